"""A snapshot and a model that is not the one it was taken of: what differs is named, and nothing is half-loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases.programs import TRAINING, said

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
