"""What iterations hold where prompts share them: a chain of iterations, each carrying those that came in one before.

A request joins the second iteration after the one in which it came (the next, where it isn't fixed ahead), so how
long one lasts decides how many prompts another carries. Four states stand for all: none, one, few and many prompts,

    t(i) = t(N) + a(i)        p'(m) = sum over i of p(i) Poisson(m; rate t(i))

the last two a standard deviation below and above the mean of two and more. What an iteration takes longer with
prompts, ``a``, may be anything: linear in their tokens, or the same for one and eight where the host's launches pace
it. Then an iteration that carries some draws another that does, while a replica that carries none goes on so.

Where nobody comes while the last answers are decoded, the replica rests, and the next iteration carries one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

LEAST: Final = 1e-12
MOST_COUNTED: Final = 12
"""Prompts of an iteration that are told apart one by one where it matters how many pass a captured graph."""
MOST_FOLLOWED: Final = 0.98
"""Of the length of an iteration that goes on to another, where hardly any is without prompts."""


@dataclass(frozen=True, slots=True)
class Company:
    """How many prompts an iteration carries: arrays over candidates."""

    none: Any
    one: Any
    """Shares of the iterations that carry none, and one."""
    few: Any
    many: Any
    """Two numbers that all others carry, equally often,"""
    often: Any = 0.5
    """or ``many`` in this share of them: where few fit a captured graph, and many don't,"""
    around: Any = 0.0
    """and how far numbers around these two scatter in that case: standard deviation."""

    @classmethod
    def by_chance(cls, mean: Any) -> Self:
        """``mean`` on average, independently of each other (Poisson).

        >>> found = Company.by_chance(np.array([1.0]))
        >>> [round(float(value[0]), 3) for value in (found.none, found.one, found.few, found.many, found.mean)]
        [0.368, 0.368, 2.0, 2.784, 1.0]
        """
        none = np.exp(-mean)
        return cls._of(none, mean * none, mean, mean**2)

    @classmethod
    def _of(cls, none: Any, one: Any, mean: Any, pairs: Any) -> Self:
        """From how often there is none or one, and the mean of m and of m (m - 1)."""
        more = np.maximum(1.0 - none - one, LEAST)
        several = np.maximum((mean - one) / more, 2.0)
        scatter = np.sqrt(np.maximum(pairs / more + several - several**2, 0.0))
        few = np.maximum(several - scatter, 2.0)
        many = 2.0 * several - few
        return cls(none=none, one=one, few=few, many=many, around=(many - few) / 2.0)

    def split(self, chance: Any, arriving: Any, passed: FloatArray | None, own: int = 0) -> Company:
        """The same, with few and many told apart by what fits a captured graph, where anything does.

        A share ``chance`` of iterations let so many come on average, ``arriving``, and ``own`` more for sure;
        ``passed`` says how often so many prompts pass the graph: (``MOST_COUNTED`` + 1, n), NaN where none is captured.
        """
        if passed is None:
            return self
        share = chance * np.exp(-arriving)
        under, under_mean = 0.0 * self.none, 0.0 * self.none
        for count in range(own, MOST_COUNTED + 1):
            if count > own:
                share = share * arriving / (count - own)
            if count >= 2:
                fits = share.sum(axis=0) * (1.0 - passed[count])
                under, under_mean = under + fits, under_mean + count * fits
        several = np.maximum(1.0 - self.none - self.one, LEAST)
        mean = several * (self.few + (self.many - self.few) * self.often)
        over = np.maximum(several - under, LEAST)
        found = Company(
            none=self.none,
            one=self.one,
            few=np.maximum(under_mean / np.maximum(under, LEAST), 2.0),
            many=np.maximum((mean - under_mean) / over, 2.0),
            often=over / np.maximum(over + under, LEAST),
        )
        told = np.isfinite(passed[MOST_COUNTED])
        return Company(*(np.where(told, new, old) for new, old in zip(found._all, self._all, strict=True)))

    @property
    def _all(self) -> tuple[Any, ...]:
        return self.none, self.one, self.few, self.many, self.often, self.around

    def several(self, values: Any) -> Any:
        """Mean of two values, at few and at many."""
        return values[0] + (values[1] - values[0]) * self.often

    @property
    def mean(self) -> Any:
        return self.one + np.maximum(1.0 - self.none - self.one, 0.0) * self.several((self.few, self.many))


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a request finds that comes at any moment: arrays over candidates."""

    at_work: Any
    """How often an iteration is under way."""
    followed: Any
    """How often another is fixed already that it doesn't join."""
    next_carries: Any
    next_longer_s: Any
    """How often that one carries prompts, and what it then takes longer than one without."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Iterations:
    """Iterations in steady state, with their prompts: arrays over candidates, or over states and candidates."""

    rate: FloatArray
    company: Company
    chance: FloatArray
    """Of an iteration that carries none, one, few or many: (4, n)."""
    length_s: FloatArray
    """How long it lasts."""
    empty: FloatArray
    """How often nobody comes meanwhile."""
    mean_s: FloatArray
    variance_s2: FloatArray

    @classmethod
    def of(cls, rate: FloatArray, company: Company, length_s: FloatArray) -> Self:
        """Iterations in such ``company``, which last so long: (4, n)."""
        several = np.maximum(1.0 - company.none - company.one, 0.0)
        many = several * company.often
        chance = np.array([company.none, company.one, several - many, many])
        mean = _mean(chance, length_s)
        return cls(
            rate=rate,
            company=company,
            chance=chance,
            length_s=length_s,
            empty=np.exp(-rate * length_s),
            mean_s=mean,
            variance_s2=_mean(chance, (length_s - mean) ** 2),
        )

    @classmethod
    def without_prompts(cls, rate: FloatArray, iteration_s: FloatArray) -> Self:
        zero = 0.0 * rate
        company = Company(none=zero + 1.0, one=zero, few=zero + 2.0, many=zero + 2.0)
        return cls.of(rate, company, iteration_s + np.zeros((4, 1)))

    @property
    def iteration_s(self) -> Any:
        """One without prompts."""
        return self.length_s[0]

    @cached_property
    def some_s(self) -> Any:
        """One with prompts."""
        some = np.maximum(1.0 - self.chance[0], LEAST)
        return np.maximum((self.mean_s - self.chance[0] * self.iteration_s) / some, self.iteration_s)

    @cached_property
    def after_some(self) -> Any:
        """How often nobody comes during one that carries prompts."""
        return _mean(self.chance[1:], self.empty[1:]) / np.maximum(1.0 - self.chance[0], LEAST)

    @property
    def always_mean_s(self) -> Any:
        """How long one lasts on average where there always is one."""
        after_some, some = self.after_some, np.maximum(1.0 - self.chance[0], LEAST)
        none = after_some / np.maximum(1.0 - self.empty[0] + after_some, LEAST)
        longer = (self.mean_s - self.chance[0] * self.iteration_s) / some
        return self.iteration_s + (1.0 - none) * np.maximum(longer - self.iteration_s, 0.0)

    @cached_property
    def met(self) -> Any:
        """How often a random moment finds which: longer ones more often."""
        return self.chance * self.length_s / self.mean_s

    @cached_property
    def arriving(self) -> Any:
        """How many come in one on average."""
        return self.rate * self.length_s

    @property
    def met_mean(self) -> Any:
        """How many come in an iteration as a random moment finds it."""
        return self.rate * (self.mean_s + self.variance_s2 / self.mean_s)

    @property
    def met_none(self) -> Any:
        """How often nobody comes in one as a random moment finds it."""
        return _mean(self.met, self.empty)

    @cached_property
    def no_arrival(self) -> Any:
        """How often nobody comes in one."""
        return _mean(self.chance, self.empty)

    @property
    def follows(self) -> Any:
        """How much longer a later one is for each second that one is longer: as the prompts of both go together."""
        company, mean = self.company, self.company.mean
        off = np.array([-mean, 1.0 - mean, company.few - mean, company.many - mean])
        spread = _mean(self.chance, off**2)
        slope = _mean(self.chance * off, self.length_s) / np.maximum(spread, LEAST)
        return np.minimum(np.maximum(self.rate * slope, 0.0), MOST_FOLLOWED)

    def rests_after(self, decodes: Any, lookahead: Any) -> Any:
        """How often an iteration with prompts is the last of all that carry some, until the replica has rested."""
        nobody = np.exp(-self.rate * self.iteration_s * np.maximum(decodes - lookahead, 0.0)) * self.after_some
        # Nobody came in the one before either, or there was none.
        before = np.where(lookahead > 0.0, self.no_arrival, 1.0)
        return nobody * before / (1.0 - nobody * (1.0 - before))

    def next_company(self, decodes: Any, lookahead: Any, passed: FloatArray | None = None) -> Company:
        """Of the iterations that follow these; in the long run, as far as none and some are concerned."""
        rests = self.rests_after(decodes, lookahead)
        goes_on = np.maximum(self.after_some - rests, 0.0)
        none = goes_on / np.maximum(1.0 - self.empty[0] + goes_on, 1e-300)
        some = 1.0 - none
        chance = self.chance * (some / np.maximum(1.0 - self.chance[0], LEAST))
        chance[0] = none
        begun = some * rests
        came = chance * self.arriving
        mean, pairs = came.sum(axis=0) + begun, _mean(came, self.arriving)
        one = _mean(came, self.empty) + begun
        # E m (m - 1) of a mixture of Poisson counts is that of its squared means; one that comes for sure adds nothing.
        return Company._of(none, one, mean, pairs).split(chance, self.arriving, passed)

    def _both(self, decodes: Any) -> tuple[Any, Any]:
        """How often the next iteration carries prompts where it is fixed ahead: after one with prompts, and after one
        without.

        Iterations then are two chains that take turns; a rest ends both, and the next request begins one of them.
        """
        ends, begins = self.after_some, np.maximum(1.0 - self.empty[0], 1e-300)
        stays = (1.0 - begins) ** np.maximum(decodes - 1.0, 0.0)
        again = begins / (2.0 - begins) * (1.0 - stays)
        both = (1.0 - ends) * begins + ends * (1.0 - begins) * again
        both = both / np.maximum(1.0 - (1.0 - ends) ** 2 - ends**2 * again, LEAST)
        none = (both * ends**2 + ends * (1.0 - begins)) * (1.0 - stays) / begins
        return 2.0 * both / (2.0 * both + 1.0), 1.0 / (1.0 + none)

    def ended(self, decodes: Any, lookahead: Any) -> Any:
        """How often an iteration is the last with prompts before the replica rests."""
        return (1.0 - self.chance[0]) * self.rests_after(decodes, lookahead)

    def at_work(self, ended: Any, lookahead: Any) -> Any:
        """Share of time that an iteration is under way."""
        rest_s = ended * np.where(lookahead > 0.0, self.empty[0], 1.0) / np.maximum(self.rate, 1e-300)
        return self.mean_s / (self.mean_s + rest_s)

    def found(self, decodes: Any, lookahead: Any) -> Found:
        """What a request finds, where answers are decoded in ``decodes`` iterations."""
        mean, iteration = self.mean_s, self.iteration_s
        ended = self.ended(decodes, lookahead)
        at_work = self.at_work(ended, lookahead)
        # The others are not the first after a rest, or after what ended everything.
        left = np.maximum(1.0 - ended, LEAST)
        carries = np.maximum(1.0 - self.chance[0] - ended, 0.0) / left
        with_some, without = self._both(decodes)
        some = 1.0 - self.met[0]
        next_carries = some * with_some + (1.0 - some) * without
        longer = np.maximum(mean - iteration - ended * (self.length_s[1] - iteration), 0.0) / left
        return Found(
            at_work=at_work,
            followed=at_work * np.maximum(1.0 - ended * iteration / mean, 0.0),
            next_carries=next_carries,
            next_longer_s=longer / np.maximum(carries, LEAST),
        )


def beside_one(nobody: Any, others: Any) -> Company:
    """One prompt for sure, and ``others`` on average, none of them in a share ``nobody`` of the cases.

    >>> found = beside_one(np.array([0.5]), np.array([1.0]))
    >>> [round(float(value[0]), 3) for value in (found.none, found.one, found.few, found.many, found.mean)]
    [0.0, 0.5, 2.0, 4.0, 2.0]
    """
    several = np.maximum(others / np.maximum(1.0 - nobody, LEAST), 1.0)
    few = 1.0 + np.maximum(several - np.sqrt(several), 1.0)
    many = 2.0 * (1.0 + several) - few
    return Company(none=0.0 * nobody, one=nobody, few=few, many=many, around=(many - few) / 2.0)


def _mean(chance: FloatArray, value: FloatArray) -> Any:
    """Over states."""
    return (chance * value).sum(axis=0)
