import pytest

from aircl.registry import Registry


@pytest.fixture
def colours():
    return Registry("colour")


def define_red(colours, code):
    @colours.register("red")
    def red():
        return code


def test_what_is_defined_again_takes_its_own_place(colours):
    define_red(colours, "#f00")
    define_red(colours, "#e00")
    assert (list(colours), colours["red"]()) == (["red"], "#e00")


def test_another_one_may_not_have_the_name(colours):
    define_red(colours, "#f00")
    with pytest.raises(ValueError, match="there is a colour 'red' already"):

        @colours.register("red")
        def crimson():
            return "#d00"

    assert colours["red"]() == "#f00"


def test_a_value_has_no_place_of_its_own(colours):
    colours.register("red")("#f00")
    with pytest.raises(ValueError, match="there is a colour 'red' already"):
        colours.register("red")("#f00")
