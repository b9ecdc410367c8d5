"""The training loop: a Trainer makes steps, evaluates, and can be turned into a checkpoint and back.

It prints nothing and writes nothing; `session.py` does that around it.
"""

from __future__ import annotations

import math
import reprlib
import time
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass, fields
from typing import Any

from gradwalk.control import no_grad
from gradwalk.engine import Value, topological_order
from gradwalk.errors import NumberError, WorkerError
from gradwalk.nn import GPT
from gradwalk.nn.module import flat
from gradwalk.optim import OPTIMISERS, SCHEDULES, Optimiser, clip_gradients, takers
from gradwalk.training import data
from gradwalk.training.checkpoint import DAMAGES, Checkpoint, CheckpointError
from gradwalk.training.tokenizer import Tokenizer

LARGEST_BATCH = 1_000_000  # documents; more than any file within data.LARGEST_FILE is worth going through in one step
LARGEST_MODEL = 10_000_000  # parameters, one Value each: a step of more has some hundred million nodes
KINDS: dict[str, set[type]] = {
    "int": {int}, "float": {int, float}, "float | None": {int, float, type(None)}, "str": {str}, "bool": {bool},
}  # fmt: skip
LEAST = {"steps": 0, "batch_size": 1, "lr": 0, "warmup": 0, "beta1": 0, "beta2": 0, "momentum": 0, "weight_decay": 0,
         "clip": 0, "n_embd": 1, "n_head": 1, "n_layer": 1, "block_size": 1, "validation_share": 0}  # fmt: skip


class NotFiniteError(ValueError):
    """The loss or a parameter became infinite or not a number; the text names the operation that it began with."""


@dataclass(frozen=True)
class Configuration:
    """All that decides what a run computes, besides the documents: equal configurations give equal weights."""

    steps: int = 500
    batch_size: int = 1
    lr: float = 0.01
    schedule: str = "linear"
    warmup: int = 0
    optimizer: str = "adam"
    beta1: float = 0.9
    beta2: float = 0.95
    momentum: float = 0.0
    nesterov: bool = False
    weight_decay: float = 0.0
    clip: float | None = None
    n_embd: int = 16
    n_head: int = 4
    n_layer: int = 1
    block_size: int = 8
    activation: str = "relu_squared"
    tied: bool = False
    validation_share: float = 0.1
    seed: int = 42
    compiled: bool = False  # in a compiled step sums are made in another order, so the last bits differ

    def __post_init__(self) -> None:
        # a checkpoint's may have been written by anybody: every field is what the loop takes it for
        for field in fields(self):
            value = getattr(self, field.name)
            if type(value) not in KINDS[str(field.type)]:
                raise ValueError(f"{field.name}: expected {field.type}, got {reprlib.repr(value)}")
            most = 2**63 if isinstance(value, int) else math.inf
            if isinstance(value, int | float) and not LEAST.get(field.name, -most) <= value < most:
                raise ValueError(f"{field.name}: {reprlib.repr(value)} is out of range")
        if self.batch_size > LARGEST_BATCH:
            raise ValueError(f"batch_size: expected at most {LARGEST_BATCH:,}, got {self.batch_size}")
        if self.schedule not in SCHEDULES:
            raise ValueError(f"schedule: expected one of {', '.join(SCHEDULES)}, got {reprlib.repr(self.schedule)}")
        if self.smallest() > LARGEST_MODEL:
            raise ValueError(
                f"n_embd {self.n_embd}, n_layer {self.n_layer}, block_size {self.block_size}: expected a model of at "
                f"most {LARGEST_MODEL:,} parameters, got {self.smallest():,} or more"
            )

    def smallest(self, vocabulary_size: int = 0) -> int:
        """How many parameters its model has at least."""
        return self.n_embd * (vocabulary_size + self.block_size) + 12 * self.n_layer * self.n_embd**2

    def model(self, vocabulary_size: int) -> GPT:
        return GPT(
            vocabulary_size, self.n_embd, self.n_head, self.n_layer, self.block_size, self.activation, self.tied,
            seed=self.seed,
        )  # fmt: skip

    def optimiser(self, model: GPT) -> Optimiser:
        if self.optimizer not in OPTIMISERS:
            raise ValueError(f"optimizer: expected one of {', '.join(OPTIMISERS)}, got {self.optimizer!r}")
        settings = {"betas": (self.beta1, self.beta2)}
        settings |= {name: getattr(self, name) for name in ("momentum", "nesterov", "weight_decay")}
        for name, setting in list(settings.items()):
            if self.optimizer not in takers(name):
                if setting and name != "betas":  # those have no value that says there are none
                    belongs = " and ".join(takers(name))
                    raise ValueError(f"{self.optimizer}: expected no {name.replace('_', ' ')}, it belongs to {belongs}")
                del settings[name]
        return OPTIMISERS[self.optimizer](model.parameters(), self.lr, **settings)


@dataclass(frozen=True)
class Record:
    """What one step was."""

    step: int  # from 1
    loss: float  # the mean over the batch, before the step
    lr: float
    validation_loss: float | None  # after the step, where it was measured
    seconds: float  # since this run began


class Trainer:
    """A model, its optimiser and its documents, between two steps."""

    def __init__(
        self, configuration: Configuration, documents: Sequence[str], tokenizer: Tokenizer | None = None,
        evaluated_documents: int = 200,
    ) -> None:  # fmt: skip
        self.configuration = configuration
        self.tokenizer = tokenizer or Tokenizer.for_documents(documents)
        if len(self.tokenizer.characters) < 2:
            only = self.tokenizer.characters
            raise data.DataError(f"every document is made of the one character {only!r}: there is nothing to learn")
        self.digest = data.digest(documents)
        self.documents, validation = data.split(documents, configuration.validation_share, configuration.seed)
        self.validation = validation[:evaluated_documents]
        self.model = configuration.model(self.tokenizer.vocabulary_size)
        self.optimiser = configuration.optimiser(self.model)
        self.compiled = _compiled(self._share) if configuration.compiled else None
        self.order = data.Order(len(self.documents), configuration.seed)
        self.executor: Executor | None = None  # whose workers share the work of a batch; the bits are the same
        self.step = 0
        self.losses = array("d")
        self.validation_losses: list[tuple[int, float]] = []
        self._schedule = SCHEDULES[configuration.schedule](configuration.steps, configuration.warmup)

    # ---------------------------------------------------------------- steps

    def run(self, until: int | None = None, evaluate_every: int = 100) -> Iterator[Record]:
        """Make the steps that are left, up to `until`; between two records the trainer can be saved, or left."""
        steps = self.configuration.steps
        last = steps if until is None else min(until, steps)
        if self.validation_losses and self.step < steps and self.validation_losses[-1][0] % evaluate_every:
            self.validation_losses.pop()  # measured because it was the last step; the run is longer now
        began = time.perf_counter()
        while self.step < last:
            lr = self.rate()
            loss = self.make_step(lr)
            yield Record(self.step, loss, lr, self.evaluated(evaluate_every), time.perf_counter() - began)

    def rate(self) -> float:
        """The learning rate of the next step."""
        return self.configuration.lr * self._schedule(self.step)

    def make_step(self, lr: float) -> float:
        """One batch forward, backward and update; returns the batch's mean loss."""
        mark = self.order.mark()
        chosen = self.next_documents()
        try:
            if self.compiled is not None and len(chosen) == 1 and self.configuration.clip is None:
                total = self._all_at_once(chosen[0], lr)
            else:
                total = self._backward(chosen)
                self._clip()
                self.optimiser.step(lr)
                self.optimiser.zero_grad()
        except Exception:
            if self.is_between_steps:  # nothing has been moved: the step can still be made, in a run that goes on later
                self.order.go_back(mark)
                self.optimiser.zero_grad()
            raise
        return self.stepped(total / len(chosen))

    @property
    def is_between_steps(self) -> bool:
        """Whether every step that was begun was made whole: an error may have come in the middle of an update."""
        return self.optimiser.steps == self.step == len(self.losses)

    def next_documents(self) -> list[str]:
        """Those of the next step; each is handed out once."""
        return [self.documents[number] for number in self.order.take(self.configuration.batch_size)]

    def stepped(self, loss: float) -> float:
        """A step was made, with this mean loss."""
        self.step += 1
        self.losses.append(loss)
        return loss

    def evaluates(self, every: int) -> bool:
        """Whether the validation loss is measured now: every so many steps, and after the last one."""
        return bool(self.validation) and (self.step == self.configuration.steps or self.step % every == 0)

    def evaluated(self, every: int) -> float | None:
        """The validation loss, where it is to be measured after the step that was made last."""
        if not self.evaluates(every):
            return None
        loss = self.validation_loss()
        self.validation_losses.append((self.step, loss))
        return loss

    def tokens(self, document: str) -> list[int]:
        """What the model sees of a document: as many tokens as its block has places for, and the one after."""
        seen = self.configuration.block_size + 1
        return self.tokenizer.encode(document[:seen])[:seen]

    @property
    def programs(self) -> int | None:
        """How many programs the compiled step is made of by now, one for each length of document; None if it is not."""
        return None if self.compiled is None else len(self.compiled.programs)

    def _all_at_once(self, document: str, lr: float) -> float:
        """Forward, backward and update by the compiled step; returns the loss."""
        assert self.compiled is not None
        try:
            loss: float = self.compiled.train_step(self.optimiser, self.tokens(document), lr=lr)
        except NumberError as error:
            raise self.no_loss([document], error) from None
        self.check(document, loss)
        return loss

    def _clip(self) -> None:
        if self.configuration.clip is not None:
            try:
                clip_gradients(self.optimiser.parameters, self.configuration.clip)
            except ValueError as error:
                raise NotFiniteError(f"step {self.step + 1}: {error}") from None

    def no_loss(self, documents: Sequence[str], error: NumberError) -> NotFiniteError:
        """In the operation's own words."""
        shown = ", ".join(map(repr, documents[:3])) + (", …" if len(documents) > 3 else "")
        return NotFiniteError(f"step {self.step + 1}: no finite loss for {shown}: {error}")

    def _backward(self, documents: Sequence[str]) -> float:
        """Add the gradient of the mean loss to the parameters'; returns the sum of the losses."""
        try:
            shares = self._shares(documents)
        except NumberError as error:
            raise self.no_loss(documents, error) from None
        losses = [share * len(documents) for share in shares]
        for document, loss in zip(documents, losses, strict=True):
            self.check(document, loss)
        return sum(losses)

    def _shares(self, documents: Sequence[str]) -> list[float]:
        """What each document adds to the mean loss; its gradient is added to the parameters'."""
        if self.compiled is not None:
            inputs = [self.tokens(document) for document in documents]
            shares: list[float] = self.compiled.map_backward(inputs, executor=self.executor)
            return shares
        shares = []
        for document in documents:
            share = self._share(self.tokens(document))
            share.backward()
            shares.append(share.data)
        return shares

    def _share(self, tokens: Sequence[int]) -> Any:
        """What a document adds to the mean loss of its batch."""
        loss = self.model.loss(tokens)
        return loss if self.configuration.batch_size == 1 else loss / self.configuration.batch_size

    def check(self, document: str, loss: float) -> None:
        """Say where it began, if the loss is infinite or not a number."""
        if math.isfinite(loss):
            return
        names = {value: name for name, value in self.model.named_parameters()}
        began = told_of(first_not_finite(self.model.loss(self.tokens(document))), names)
        raise NotFiniteError(f"step {self.step + 1}: the loss for {document!r} is {loss}: {began}")

    def validation_loss(self) -> float:
        """The mean loss over the documents that were set aside for it."""
        try:
            if self.compiled is not None:
                with no_grad():  # a compiled function then gives plain numbers
                    inputs = [self.tokens(document) for document in self.validation]
                    try:
                        shares = self.compiled.map(inputs, executor=self.executor)
                    except WorkerError:  # the step is made, and is to be saved with what it came to
                        shares = self.compiled.map(inputs)
                losses = [share * self.configuration.batch_size for share in shares]
            else:
                frozen = self.model.frozen()
                losses = [frozen.loss(self.tokens(document)) for document in self.validation]
        except NumberError as error:
            raise NotFiniteError(f"step {self.step}: no finite validation loss: {error}") from None
        loss = mean(losses)
        if not math.isfinite(loss):
            raise NotFiniteError(f"step {self.step}: the validation loss is not finite; the step before went too far")
        return loss

    def recent_loss(self, steps: int = 50) -> float:
        """The mean loss of the last steps."""
        return mean(self.losses[-steps:])

    # ---------------------------------------------------------------- checkpoints

    def checkpoint(self, data_name: str | None = None) -> Checkpoint:
        """The run as it stands, to be saved; `data_name` says which file the documents came from."""
        state = {name: memoryview(tensor) for name, tensor in self.model.state_dict().items()}
        for name, tensor in self.model.tensors().items():
            if not all(math.isfinite(value.data) for value in flat(tensor)):
                raise NotFiniteError(f"step {self.step}: parameters in {name} are not finite; nothing was saved")
        return Checkpoint(
            step=self.step,
            configuration=asdict(self.configuration),
            characters=self.tokenizer.characters,
            data={"name": data_name, "digest": self.digest},
            model=state,
            optimizer={
                name: part if isinstance(part, int) else memoryview(part)
                for name, part in self.optimiser.state_dict().items()
            },
            order=self.order.state(),
            losses=list(self.losses),
            validation_losses=list(self.validation_losses),
        )

    @classmethod
    def resumed(
        cls, checkpoint: Checkpoint, documents: Sequence[str], configuration: Configuration,
        evaluated_documents: int = 200,
    ) -> Trainer:  # fmt: skip
        """A trainer that goes on where the checkpoint was taken; `configuration` is the checkpoint's, or longer."""
        tokenizer = Tokenizer(checkpoint.characters)
        unknown = sorted(set().union(*documents) - set(checkpoint.characters))
        if unknown:
            raise CheckpointError(
                f"the checkpoint is for another vocabulary: the data has {''.join(unknown[:10])!r}, "
                f"the checkpoint only {tokenizer.shown()!r}"
            )
        if checkpoint.data.get("digest") != data.digest(documents):
            raise CheckpointError("the data is not what the checkpoint was trained on: other lines, or another order")
        trainer = cls(configuration, documents, tokenizer, evaluated_documents)
        trainer.model.load_state_dict(checkpoint.model)
        trainer.optimiser.load_state_dict(checkpoint.optimizer)
        trainer.order.restore(checkpoint.order)
        trainer.step = checkpoint.step
        trainer.losses = array("d", checkpoint.losses)
        trainer.validation_losses = list(checkpoint.validation_losses)
        return trainer


def _compiled(function: Callable[..., Any]) -> Any:
    from gradwalk.compiler.compile import compile  # it needs NumPy, and nothing else here does

    return compile(function)


def mean(losses: Sequence[float]) -> float:
    """Their mean; what is not finite, or too large to be added up, makes it so too.

    >>> mean([1.0, 2.0]), mean([1e308, 1e308]), mean([])
    (1.5, inf, nan)
    """
    try:
        return math.fsum(losses) / len(losses) if losses else math.nan
    except (OverflowError, ValueError):  # of finite numbers; of infinities of both signs
        return math.inf


def configuration_of(checkpoint: Checkpoint) -> Configuration:
    """The configuration in a checkpoint, if it fits the tensors in it."""
    try:
        configuration = Configuration(**checkpoint.configuration)
        smallest = configuration.smallest(len(checkpoint.characters) + 1)
    except DAMAGES as error:
        raise CheckpointError(f"a damaged checkpoint (its configuration: {error})") from None
    # before a model of that size is made: it may not fit the memory
    if smallest > sum(math.prod(tensor.shape or ()) for tensor in checkpoint.model.values()):
        raise CheckpointError("a damaged checkpoint (its tensors are too small for its configuration)")
    return configuration


def model_of(checkpoint: Checkpoint) -> tuple[GPT, Tokenizer]:
    """The model in a checkpoint, and its tokenizer."""
    try:
        tokenizer = Tokenizer(checkpoint.characters)
        model = configuration_of(checkpoint).model(tokenizer.vocabulary_size)
        model.load_state_dict(checkpoint.model)
    except CheckpointError:
        raise
    except DAMAGES as error:
        raise CheckpointError(f"a damaged checkpoint ({error})") from None
    return model, tokenizer


# ---------------------------------------------------------------- where a nan or an infinity began


def first_not_finite(root: Value) -> Value | None:
    """The first node that is infinite or not a number although all it was computed from was finite.

    >>> import gradwalk
    >>> x = Value(1e200, label="x")
    >>> first_not_finite(x * x - x * x)._op
    '*'
    """
    return next((node for node in topological_order(root) if not math.isfinite(node.data)), None)


def told_of(node: Value | None, names: Mapping[Value, str]) -> str:
    """What the node is and what it was computed from, in a few words; `names` are those of the parameters."""
    if node is None:
        return "every number that it was computed from is finite"
    if not node._children:
        name = names.get(node) or node.label or "a number"
        return f"{name} is {node.data} already; the step before went too far: try a smaller --lr, or --clip 1"
    children = node._children
    largest = max(children, key=lambda child: abs(child.data))
    several = f"{len(children)} numbers, the largest " if len(children) > 2 else ""
    shown = (largest,) if several else children
    inputs = ", ".join(
        f"{child.data:g}" + (f" ({name})" if (name := names.get(child) or child.label) else "") for child in shown
    )
    return f"it began with {node._op}, which gave {node.data} from {several}{inputs}; try a smaller --lr, or --clip 1"
