"""The words of a comparison: verdicts, parts of a step, and origins."""

NOTHING, INCOMPLETE = "nothing compared", "incomplete"

#: Every divergence is shown to be float32's rounding inside a float64 model.
FLOAT32 = "equal but for float32 inside"

#: The cause of steps that are equal but for such rounding.
PRECISION = "precision inside"

PARAMETER, INPUT, OUTPUT, GRADIENT = (
    "parameter", "input", "output", "gradient")

NEW, INHERITED, WITHIN, UNKNOWN = "new", "inherited", "within", "unknown"
