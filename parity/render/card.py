"""A comparison's card in a terminal, in colour."""

from rich.text import Text

from parity.comparison.card_text import WIDTH, lines

#: The styles of a card's words, as rich has them.
STYLES = {"strong": "bold", "dim": "dim", "good": "bold green",
          "bad": "bold red", "warn": "bold yellow", "mark": "bold red", "": ""}


def print_card(out, card):
    """Print a Card.

    Args:
        out: a rich console; a narrow one gets narrower lines.
        card: a comparison.card.Card.
    """
    for line in lines(card, min(WIDTH, max(out.width, 40))):
        out.print(Text.assemble(*(
            (words, STYLES[style]) for words, style in line)), soft_wrap=True)
