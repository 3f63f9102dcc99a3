"""Paddle's DataLoader, walked so that nothing runs ahead of the step boundary."""

from __future__ import annotations

import copy
import itertools
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import paddle
from paddle.io import IterableDataset
from paddle.io.dataloader.collate import default_collate_fn, default_convert_fn

from jupyter_paddle_gpu.checkpoint.cursor import Cursor, Memory

_DRAWN_ALONG = (
    "the samples of an IterableDataset are drawn again and dropped at a resume: they are the same if its order depends "
    "on the random state at the epoch's start alone"
)
_PERSISTENT = (
    "persistent workers of an IterableDataset go on with the random state of the epochs before, a resume cannot"
)
_OWN_GENERATOR = "the dataset has a random generator of its own, whose state in worker processes cannot be read"


def loader_cursor(loader: Any) -> Cursor | None:
    """Return the cursor for a DataLoader; None where only walking it plainly works (static graphs)."""
    if not paddle.in_dynamic_mode() or not loader.return_list:
        return None
    if isinstance(loader.dataset, IterableDataset):
        return WorkerStream(loader) if loader.num_workers else Stream(loader)
    return WorkerBatches(loader) if loader.num_workers else Batches(loader)


class _Common:
    def __init__(self, loader: Any) -> None:
        self.loader = loader
        sampler = loader.batch_sampler
        inner = getattr(sampler, "sampler", None)
        counters = [thing for thing in (sampler, inner) if hasattr(thing, "__dict__")]
        self.memory = Memory(loader.dataset, loader.collate_fn, sampler, counters=counters)
        self.by_generator = bool(getattr(inner, "generator", None))

    @property
    def fetch(self) -> Callable[[], Any]:
        return self._fetch

    def _fetch(self) -> Any:
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        return self.memory.state()

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.memory.load(state)

    def inexact(self) -> tuple[str, ...]:
        if self.by_generator:
            return ("the sampler draws from a Python generator, which cannot be set back: use a seed or a list",)
        return ()

    def _collate(self, samples: Any) -> Any:
        loader = self.loader
        default = default_collate_fn if loader.auto_collate_batch else default_convert_fn
        return self._tensors((loader.collate_fn or default)(samples))

    def _tensors(self, part: Any) -> Any:
        """Turn arrays into tensors on the loader's device, as the loader's own thread would."""
        if isinstance(part, np.ndarray):
            return paddle.to_tensor(part, place=self.loader.places[0])
        if isinstance(part, dict):
            return {key: self._tensors(value) for key, value in part.items()}
        if isinstance(part, (list, tuple)) and not hasattr(part, "_fields"):
            return [self._tensors(value) for value in part]
        return part

    def _order(self) -> list[Any]:
        """Draw the order of a whole epoch."""
        if self.loader.auto_collate_batch:
            return list(self.loader.batch_sampler)
        return list(range(len(self.loader.dataset)))


class Batches(_Common):
    """A dataset by index, read in this thread: paddle's own thread would move the random state ahead of us."""

    def open(self, epoch: int) -> None:
        self._rest = self._order()
        self._next = 0

    def skip(self, batches: int) -> None:
        self._next = batches

    def _fetch(self) -> Any:
        if self._next >= len(self._rest):
            raise StopIteration
        indices = self._rest[self._next]
        self._next += 1
        dataset = self.loader.dataset
        if self.loader.auto_collate_batch:
            return self._collate([dataset[index] for index in indices])
        return self._collate(dataset[indices])


class Stream(_Common):
    """An IterableDataset, read in this thread."""

    def open(self, epoch: int) -> None:
        self._samples: Iterator[Any] = iter(self.loader.dataset)

    def skip(self, batches: int) -> None:
        for _ in range(batches):
            self._draw()

    def _fetch(self) -> Any:
        return self._collate(self._draw())

    def inexact(self) -> tuple[str, ...]:
        return (*super().inexact(), _DRAWN_ALONG)

    def _draw(self) -> Any:
        loader = self.loader
        if not loader.auto_collate_batch:
            return next(self._samples)
        samples = list(itertools.islice(self._samples, loader.batch_size))
        if not samples or (loader.drop_last and len(samples) < loader.batch_size):
            raise StopIteration
        return samples


class WorkerStream(_Common):
    """An IterableDataset, read by worker processes: they are started with the epoch's random state."""

    def open(self, epoch: int) -> None:
        self._batches = iter(self.loader)

    def skip(self, batches: int) -> None:
        for _ in range(batches):
            next(self._batches)

    def _fetch(self) -> Any:
        return next(self._batches)

    def inexact(self) -> tuple[str, ...]:
        persistent = (_PERSISTENT,) if self.loader._persistent_workers else ()
        return (*super().inexact(), _DRAWN_ALONG, *persistent)


class WorkerBatches(_Common):
    """A dataset by index, read by worker processes, which get a seed with every batch.

    So a batch has the same noise whichever worker reads it, and whatever was read before.
    """

    def __init__(self, loader: Any) -> None:
        super().__init__(loader)
        self._clone = copy.copy(loader)
        self._clone._iterator = None
        self._clone.dataset = Seeded(loader.dataset)
        self._listed: list[Any] = []
        if loader.auto_collate_batch:
            self._clone.batch_sampler = self._listed
        self._plan: list[Draw] = []
        self._batches: Iterator[Any] = iter(())

    def open(self, epoch: int) -> None:
        seed = int(np.random.randint(low=0, high=sys.maxsize))  # paddle draws one here for its workers
        self._plan = [Draw(indices, seed + number) for number, indices in enumerate(self._order())]
        self._start: int | None = 0

    def skip(self, batches: int) -> None:
        self._start = batches

    def _fetch(self) -> Any:
        if self._start is not None:
            self._walk(self._plan[self._start :])
            self._start = None
        return next(self._batches)

    def _walk(self, draws: list[Draw]) -> None:
        clone = self._clone
        if clone.auto_collate_batch:
            self._listed[:] = [draw.items() for draw in draws]
        else:
            clone._persistent_workers = False  # they would keep the first epoch's order
            clone.dataset.order = [draw.item() for draw in draws]
        drawn = np.random.get_state(legacy=False)
        self._batches = iter(clone)
        np.random.set_state(drawn)

    def inexact(self) -> tuple[str, ...]:
        own = (_OWN_GENERATOR,) if self.memory.has_generators() else ()
        return (*super().inexact(), *own)


class Draw:
    """The indices of a batch, and its seed."""

    def __init__(self, indices: Any, seed: int) -> None:
        self._indices = indices
        self._seed = seed

    def items(self) -> list[tuple[Any, int | None]]:
        """The first sample of a batch carries its seed."""
        return [(index, self._seed if i == 0 else None) for i, index in enumerate(self._indices)]

    def item(self) -> tuple[Any, int]:
        return (self._indices, self._seed)


class Seeded:
    """The user's dataset in a worker process; takes the indices of a Draw."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self.order: list[Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("_dataset", "order"):
            raise AttributeError(name)
        return getattr(self._dataset, name)

    def __len__(self) -> int:
        return len(self._dataset) if self.order is None else len(self.order)

    def __getitem__(self, item: Any) -> Any:
        index, seed = item if self.order is None else self.order[item]
        if seed is not None:
            np.random.seed(seed % 2**32)
            random.seed(seed)
            paddle.seed(seed)
        return self._dataset[index]
