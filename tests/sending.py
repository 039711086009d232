"""What a worker process does for tests/test_pickle.py: functions that a process can find."""

import pickle

import fragdex


def describe(index):
    """Everything an index answers, as plain values, or the error it answers with."""
    answers = [index.file, index.how, index.findings, index.complete, index.resume_offset]
    for track in index.tracks:
        answers += [track.info, track.shift, track.period, track.exact]
        for ask in (
            lambda track: track.has_samples,
            lambda track: {n: c.tolist() for n, c in track.fragments.columns().items()},
            lambda track: {n: c.tolist() for n, c in track.sync_samples.columns().items()},
            lambda track: track.groups,
            lambda track: {n: c.tolist() for n, c in track.samples.columns().items()},
            lambda track: [track.seek(time) for time in (0, 0.4, 1, "0:02", 1e6)],
        ):
            try:
                answers.append(ask(track))
            except fragdex.FragdexError as error:
                answers.append((type(error).__name__, str(error)))
    return answers


def there_and_back(data):
    """Unpickle an index in this process; what it says of itself, and its pickle from here."""
    index = pickle.loads(data)  # noqa: S301
    return describe(index), pickle.dumps(index)


def fail_with(error):
    """Raise an error in this process."""
    raise error
