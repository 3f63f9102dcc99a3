"""paddle.Model.fit with the boundaries of guard.steps: it can stop between two batches, and go on there."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import paddle
from paddle.hapi import callbacks as paddles

from jupyter_paddle_gpu.checkpoint.keep import settle
from jupyter_paddle_gpu.checkpoint.loop import Loop
from jupyter_paddle_gpu.checkpoint.returning import Resume
from jupyter_paddle_gpu.checkpoint.steps import enter_epoch

_NOT_REMEMBERED = ("model", "params")
_BATCHES = ("on_train_batch_begin", "on_train_batch_end")


def arguments_of(fit: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return every argument of a call of ``fit`` by name, without the model."""
    bound = inspect.signature(fit).bind(*args, **kwargs)
    bound.apply_defaults()
    return dict(list(bound.arguments.items())[1:])


def dynamic() -> bool:
    """Whether networks run as they are written, not as static graphs."""
    return bool(paddle.in_dynamic_mode())


def loaders_of(model: Any, arguments: dict[str, Any]) -> tuple[Any, Any]:
    """Return the training data and the evaluation data (None: there is none) as fit would walk them."""
    size = arguments["batch_size"]
    sizes = tuple(size) if isinstance(size, (list, tuple)) else (size, size)
    shuffled = {"shuffle": arguments["shuffle"], "drop_last": arguments["drop_last"]}

    def loader(data: Any, batch_size: int, **options: Any) -> Any:
        if not isinstance(data, paddle.io.Dataset):
            return data
        sampler = paddle.io.DistributedBatchSampler(data, batch_size=batch_size, **options)
        workers = arguments["num_workers"]
        return paddle.io.DataLoader(
            data, batch_sampler=sampler, places=model._place, num_workers=workers, return_list=True
        )

    return loader(arguments["train_data"], sizes[0], **shuffled), loader(arguments["eval_data"], sizes[1])


class Fit:
    """One call of fit: stands between its loop and its callbacks."""

    def __init__(self, model: Any, loop: Loop, resume: Resume) -> None:
        self._model = model
        self._loop = loop
        self._resume = resume
        self._epoch = -1
        self._offset = 0  # batches of the open epoch that were done before
        self._ran = False  # a batch of the open epoch, in this process
        self._step = resume.position.step
        self._logs: dict[str, Any] = {}
        self._callbacks: list[Any] = []
        loop.extra = self._remember

    def run(self, fit: Callable[..., Any], module: Any, arguments: dict[str, Any]) -> Any:
        """Call paddle's own fit with loaders; ``module`` is where it looks up ``config_callbacks``."""
        configure = module.config_callbacks

        def configured(*args: Any, **kwargs: Any) -> Any:
            module.config_callbacks = configure
            made = configure(*args, **kwargs)
            self._callbacks = list(made.callbacks)
            made._call = partial(self._call, made._call)
            return made

        train, evaluation = arguments["train_data"], arguments["eval_data"]
        data = {"train_data": _training(self, train), "eval_data": _evaluation(self, evaluation)}
        module.config_callbacks = configured
        try:
            return fit(self._model, **{**arguments, **data})
        finally:
            module.config_callbacks = configure

    def passing_over(self) -> bool:
        """Whether the epoch that runs was finished before the snapshot."""
        return self._epoch < self._resume.position.epoch

    def _call(self, call: Callable[..., None], name: str, *args: Any) -> None:
        """Pass on what the callbacks should hear, with the numbers of the whole training."""
        if name == "on_epoch_begin":
            self._epoch = args[0]
        if name not in ("on_train_begin", "on_train_end") and self.passing_over():
            return
        if name in _BATCHES:
            args = (args[0] + self._offset, *args[1:])
            self._logs = dict(args[1] or {})  # paddle has one dict for all epochs and evaluations of a process
        elif name == "on_epoch_end" and not self._ran:
            args = (args[0], dict(self._logs))  # every batch of this epoch was done before
        call(name, *args)

    def batches(self) -> Iterator[Any]:
        """Yield the batches of the epoch that has begun."""
        if self.passing_over():
            return
        loop, batch = self._loop, self._enter()
        while True:
            loop.reach(self._step, self._epoch, batch)
            try:
                item = loop.cursor.fetch()
            except StopIteration:
                return
            self._ran = True
            yield item
            self._step += 1
            batch += 1

    def _enter(self) -> int:
        resume, self._offset, self._ran = self._resume, 0, False
        if resume.saved and self._epoch == resume.position.epoch:
            self._recall(resume.saved.get("fit", {}))
            enter_epoch(self._loop, resume)
            self._offset = resume.position.batch
        else:
            self._loop.begin_epoch()
            self._loop.cursor.open(self._epoch)
        return self._offset

    @property
    def offset(self) -> int:
        """How many batches of the open epoch were done before."""
        return self._offset

    def _remember(self) -> dict[str, Any]:
        """Return what metrics and callbacks have counted."""
        return {
            "logs": dict(self._logs),
            "num_iters": getattr(self._model, "num_iters", None),  # paddle counts it down, evaluations too
            "metrics": [_memory_of(metric) for metric in self._model._metrics],
            "callbacks": {str(i): _memory_of(part) for i, part in enumerate(self._callbacks) if _remembers(part)},
        }

    def _recall(self, saved: dict[str, Any]) -> None:
        self._logs = dict(saved.get("logs", {}))
        for metric, values in zip(self._model._metrics, saved.get("metrics", []), strict=False):
            settle(vars(metric), {**vars(metric), **values})
        for number, values in saved.get("callbacks", {}).items():
            if int(number) < len(self._callbacks):
                memory = vars(self._callbacks[int(number)])
                settle(memory, {**memory, **values})
        if saved.get("num_iters") is not None:
            self._model.num_iters = saved["num_iters"]


def _remembers(callback: Any) -> bool:
    return not isinstance(callback, (paddles.ProgBarLogger, paddles.ModelCheckpoint))


def _memory_of(thing: Any) -> dict[str, Any]:
    return {name: value for name, value in vars(thing).items() if name not in _NOT_REMEMBERED}


def _training(fit: Fit, loader: Any) -> Any:
    return _SizedTraining(fit, loader) if hasattr(loader, "__len__") else _Training(fit)


class _Training:
    """What fit walks over in each epoch."""

    def __init__(self, fit: Fit) -> None:
        self._fit = fit

    def __iter__(self) -> Iterator[Any]:
        return self._fit.batches()


class _SizedTraining(_Training):
    """The same; its length is what the open epoch still has from its beginning in this process."""

    def __init__(self, fit: Fit, loader: Any) -> None:
        super().__init__(fit)
        self._loader = loader

    def __len__(self) -> int:
        return len(self._loader) - self._fit.offset


def _evaluation(fit: Fit, loader: Any) -> Any:
    return None if loader is None else _Evaluating(fit, loader)


class _Evaluating:
    """The evaluation data: none in an epoch that is passed over."""

    def __init__(self, fit: Fit, loader: Any) -> None:
        self._fit = fit
        self._loader = loader

    def __iter__(self) -> Iterator[Any]:
        return iter(()) if self._fit.passing_over() else iter(self._loader)

    def __len__(self) -> int:
        return len(self._loader)
