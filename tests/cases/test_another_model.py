"""A snapshot and a model that is not the one it was taken of: what differs is named, and nothing is half-loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases.programs import TRAINING, finished, said

SAVE = (
    TRAINING
    + "guard.install('backup')\npaddle.seed(1)\nmodel, optimizer = build()\ntrain(model, optimizer, 3)\n"
    + "best = [7]\nguard.keep(best=best)\n"
)

# Everything that a restore writes to, before and after one that is refused.
REFUSED = (
    TRAINING
    + """
guard.install("backup")
paddle.seed(2)
model, optimizer = build({build})
train(model, optimizer, 2)
best = [0]
guard.keep(best=best)

def look():
    state = optimizer.state_dict()
    tensors = [*model.state_dict().items(), *((k, v) for k, v in state.items() if hasattr(v, "numpy"))]
    values = [(name, tensor.numpy().tobytes()) for name, tensor in tensors]
    here = paddle.get_rng_state()
    drawn = paddle.randn([4]).numpy().tobytes()
    paddle.set_rng_state(here)
    return values, drawn, np.random.get_state()[1].tobytes(), list(best)

before = look()
try:
    guard.restore(guard.snapshots()[0])
except Exception as error:
    print(type(error).__name__, error)
    print("SAME", look() == before)
"""
)


@pytest.mark.parametrize(
    ("build", "named"),
    [
        ("width=16", ["Sequential.0.weight", "[4, 8]", "[4, 16]", "Sequential.1.weight"]),
        ("dtype='float64'", ["Sequential.0.weight", "float32", "float64"]),
        ("depth=2", ["Sequential.2.weight", "only here"]),
        ("rule=paddle.optimizer.SGD", ["AdamW in the snapshot", "SGD here"]),
    ],
    ids=["wider", "another dtype", "deeper", "another optimizer"],
)
def test_what_differs_is_named_and_nothing_is_half_loaded(place: Path, build: str, named: list[str]) -> None:
    """Loading what fits and passing over the rest leaves a model that nobody trained [Paddle#37968]."""
    said(place, SAVE + "guard.save()")
    text = said(place, REFUSED.replace("{build}", build))
    assert text.startswith("SnapshotMismatch The snapshot belongs to another model or optimizer; nothing was loaded")
    assert [part for part in named if part not in text] == []
    assert text.endswith("SAME True\n")


def test_a_network_that_fits_is_not_loaded_beside_one_that_does_not(place: Path) -> None:
    """Two networks, the second of which was changed: the first one stays as it is too."""
    pair = TRAINING + (
        "guard.install('backup')\npaddle.seed(int(sys.argv[1]))\n"
        "first, second = build(), build(int(sys.argv[2]))\nfor part in (first, second): train(*part, 2)\n"
    )
    said(place, pair + "guard.save()", "1", "8")
    text = said(
        place,
        pair + "before = first[0][0].weight.numpy().tobytes()\n"
        "try: guard.restore()\nexcept Exception as error: print(type(error).__name__)\n"
        "print(first[0][0].weight.numpy().tobytes() == before)",
        *("2", "16"),
    )
    assert text == "SnapshotMismatch\nTrue\n"


def test_a_model_built_again_in_the_same_kernel_takes_its_state_with_the_optimizers(place: Path) -> None:
    """Paddle generates other parameter names the second time [PaddleSeg#846, Paddle#37968]."""
    text = said(
        place,
        TRAINING + "guard.install('backup')\npaddle.seed(1)\nmodel, optimizer = build()\ntrain(model, optimizer, 3)\n"
        "guard.save()\nnames = [p.name for p in model.parameters()]\nprint(train(model, optimizer, 4))\n"
        "del model, optimizer\npaddle.seed(9)\nmodel, optimizer = build()\n"
        "assert [p.name for p in model.parameters()] != names\nguard.restore()\nprint(train(model, optimizer, 4))\n",
    )
    undisturbed, again = text.splitlines()
    assert again == undisturbed


# What of the snapshot is in the live model after a restore in part: names of equal weights and of equal moments.
IN_PART = (
    TRAINING
    + """
guard.install("backup", every="off")
if len(sys.argv) == 1:
    paddle.seed(1)
    model, optimizer = build(depth=2)
    train(model, optimizer, 3)
    best = [7]
    guard.keep(best=best)
    guard.save()
    import pickle
    state = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    moments = {param.name: optimizer._accumulators["moment1"][param.name].numpy() for param in model.parameters()}
    with open("state", "wb") as file: pickle.dump((state, list(moments.values())), file)
    sys.exit()
paddle.seed(2)
model, optimizer = eval(sys.argv[1])
best = [0]
guard.keep(best=best)
try:
    guard.restore(partial=True)
except Exception as error:
    print(type(error).__name__, error)
def same(tensor, array):
    here = tensor is not None and array is not None
    return here and tensor.shape == list(array.shape) and bool((tensor.numpy() == array).all())
import pickle
with open("state", "rb") as file: state, moments = pickle.load(file)
for index, (name, tensor) in enumerate(model.state_dict().items()):
    held = optimizer._accumulators["moment1"].get(model.parameters()[index].name)
    print(name, same(tensor, state.get(name)), same(held, moments[index] if index < len(moments) else None))
print(best, np.isfinite(float(train(model, optimizer, 2)[-1] != "nan")))
"""
)


@pytest.mark.parametrize(
    ("build", "weights", "moments", "told"),
    [
        ("build(depth=2)", "0 0 1 1 2 2", "0 0 1 1 2 2", ["6 tensors loaded", "not restored: learning rate"]),
        ("build(depth=3)", "0 0 1 1", "0 0 1 1", ["2.weight: float32[8, 1] in the snapshot", "3.bias: only here"]),
        ("build(depth=1)", "0 0", "0 0", ["Sequential.2.bias: only in the snapshot"]),
        ("build(depth=2, rule=paddle.optimizer.SGD)", "0 0 1 1 2 2", "", ["AdamW: no optimizer of this kind"]),
    ],
    ids=["the same", "deeper", "less deep", "another optimizer"],
)  # fmt: skip
def test_what_fits_another_model_is_loaded_when_asked_for_and_the_rest_is_named(
    place: Path, build: str, weights: str, moments: str, told: list[str]
) -> None:
    said(place, IN_PART)
    done = finished(place, IN_PART, build)
    lines = [line.split() for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stderr
    assert [name[0] for name, equal, _ in lines[:-1] if equal == "True"] == weights.split()
    assert [name[0] for name, _, equal in lines[:-1] if equal == "True"] == moments.split()
    assert lines[-1] == ["[7]", "True"]
    assert [part for part in told if part not in done.stderr] == []


def test_where_nothing_fits_nothing_is_loaded(place: Path) -> None:
    said(place, IN_PART)
    build_and_restore = IN_PART.split("def same")[0]
    text = said(place, build_and_restore, "build(width=9)")
    assert "SnapshotMismatch Nothing of the snapshot (Sequential) fits what is built here; nothing was loaded" in text
