"""What samples cost: decoded frames, bytes, requests."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["Costs"]


class Costs:
    """What the samples of a loop cost, summed up.

    Attributes:
        samples: that were added.
        frames: that they have.
        decoded: frames that were decoded for them.
        bytes: that were read.
        requests: reads; of a remote file requests.

    >>> costs = Costs()
    >>> costs.add({"numbers": np.zeros((2, 16)), "cost": np.array([[40, 5000, 1], [0, 0, 0]])})
    >>> costs
    <2 samples of 32 frames; a sample: 20.0 decoded frames, 2500 bytes, 0.5 requests>
    """

    def __init__(self) -> None:
        self.samples = self.frames = self.decoded = self.bytes = self.requests = 0

    def add(self, sample: dict[str, Any]) -> None:
        """Add a sample of `Windows`, or a batch of them, as arrays or tensors."""
        cost = np.asarray(sample["cost"]).reshape(-1, 3)
        self.samples += len(cost)
        self.frames += int(np.asarray(sample["numbers"]).size)
        decoded, size, requests = cost.sum(0).tolist()
        self.decoded += decoded
        self.bytes += size
        self.requests += requests

    def __repr__(self) -> str:
        count = max(self.samples, 1)
        return (
            f"<{self.samples} samples of {self.frames} frames; a sample: "
            f"{self.decoded / count:.1f} decoded frames, {self.bytes / count:.0f} bytes, "
            f"{self.requests / count:.1f} requests>"
        )
