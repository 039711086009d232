"""A key has one rate, however many processes answer."""

import itertools
import time

from fragdex.service.records import keys
from fragdex.service.web.rates import lease_of

PER_SECOND, BURST = 0.2, 40


def test_two_processes_together_let_a_key_make_no_more_than_its_rate(postgres_site):
    limits = {"rate_limit": PER_SECOND, "rate_burst": BURST, "job_workers": 0}
    first, second = (postgres_site.serve(**limits) for _ in range(2))
    held = 2 * lease_of(PER_SECOND, BURST)
    with postgres_site.client(first) as here, postgres_site.client(second) as there:
        began, refused = time.monotonic(), {here: 0, there: 0}
        allowed = 0
        for client in itertools.cycle(refused):
            answer = client.post("/url-token", json={"url": "/api/v1/usage"})
            if answer.status_code == 429:
                assert int(answer.headers["retry-after"]) >= 1
                assert answer.json()["limit"] == PER_SECOND
                refused[client] += 1
                if all(refused.values()):
                    break
            else:
                assert answer.status_code == 200, answer.text
                allowed += 1
        took = time.monotonic() - began
        # what was taken in advance is counted: the sum is never more than one bucket gives
        assert BURST - held <= allowed <= BURST + PER_SECOND * took
    other = keys.create_key(postgres_site.database, "theirs")
    with postgres_site.client(first, other) as stranger:
        assert stranger.get("/usage").status_code == 200
    first.end()
    second.end()
