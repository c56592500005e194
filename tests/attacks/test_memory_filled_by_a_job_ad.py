"""The owner of a job: an ad whose expressions fill the memory or the stack of the daemon."""

from contextlib import suppress

import pytest

from boinc_gahp.htcondor.attributes import AdRefused, Attributes

DOUBLED = 'a0="0123456789";' + "".join(f"a{n}=strcat(a{n - 1},a{n - 1});" for n in range(1, 31))


def test_thirty_attributes_that_double_each_other_are_refused():
    ad = Attributes(f"[{DOUBLED}]")
    with pytest.raises(AdRefused, match="A30 is an expression whose value may have more than"):
        ad.get("A30")
    assert ad.get("a10") == "0123456789" * 1024


def test_a_chain_of_four_thousand_attributes_does_not_overflow_the_stack():
    ad = Attributes("[a0=1;" + "".join(f"a{n}=a{n - 1};" for n in range(1, 4000)) + "]")
    with pytest.raises(AdRefused, match="at the end of too many expressions"):
        ad.get("a3999")
    assert ad.get("a40") == 1


@pytest.mark.parametrize("call", ['eval("1")', 'replaceAll("a", b, b)', "join(b, c)", "unparse(b)"])
def test_a_function_whose_value_can_be_larger_than_its_arguments_is_refused(call):
    ad = Attributes(f'[a={call};b="aaaa";c={{1,2}}]')
    with pytest.raises(AdRefused, match=r"a calls \w+\(\); give it a plain value"):
        ad.get("a")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('a=1 /* " */; b=2', r"/\*"),
        ('a=1; // "', "//"),
        ("'a\"b'=1", "'"),
        ("h=[x=1]; a=h.x", r"\["),
    ],
)
def test_nothing_in_the_ad_can_hide_expressions_from_the_limits(text, shown):
    with pytest.raises(AdRefused, match=f"has {shown} outside of a text in quotes"):
        Attributes(f"[{text}]")


def test_htcondors_own_expressions_and_a_circle_are_read_as_before():
    ad = Attributes(
        "[m=ifThenElse(MemoryUsage =!= undefined, MemoryUsage, (ImageSize + 1023) / 1024);"
        'ImageSize=2048; b=c; c=b; t="it\'s // [1]"; n=strcat("run-", ImageSize)]'
    )
    assert ad.get("m") == 2
    with suppress(AdRefused):  # some releases of htcondor call it an error
        assert ad.get("b") is None
    assert ad.get("t") == "it's // [1]"
    assert ad.get("n") == "run-2048"
