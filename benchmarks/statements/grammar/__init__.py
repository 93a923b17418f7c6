"""What is drawn: templates of expressions and statements by topic."""

from benchmarks.statements.grammar.fields import FIELDS
from benchmarks.statements.grammar.flags import FLAGS, VARIABLES
from benchmarks.statements.grammar.layers import LAYERS
from benchmarks.statements.grammar.lifts import LIFTS
from benchmarks.statements.grammar.methods import METHODS
from benchmarks.statements.grammar.others import OTHERS
from benchmarks.statements.grammar.shapes import SHAPES
from benchmarks.statements.grammar.state import STATE
from benchmarks.statements.grammar.topics import Topic
from benchmarks.statements.grammar.values import VALUES

ALWAYS: tuple[Topic, ...] = (VALUES, LAYERS, STATE)
SOME: tuple[Topic, ...] = (FIELDS, METHODS, SHAPES, FLAGS, VARIABLES, LIFTS)
UNUSUAL: tuple[Topic, ...] = (OTHERS,)
