"""The one scale of colours for matrices and heat maps."""

# Cividis (Nunez, Anderton and Renslow 2018: reads alike with every kind of colour vision).
_CIVIDIS = ((0, 34, 78), (66, 78, 108), (125, 124, 120), (186, 174, 108), (254, 232, 56))


def _cividis(share: float) -> str:
    place = min(share * 4, 3.999)
    low, high = _CIVIDIS[int(place)], _CIVIDIS[int(place) + 1]
    parts = (round(one + (other - one) * (place % 1)) for one, other in zip(low, high, strict=True))
    return "#" + "".join(f"{part:02x}" for part in parts)


COLOURS = tuple(_cividis(step / 31) for step in range(32))  # dark for low
