"""Messages and words of the engine that a page shows, named here so that they can be translated.

The engine knows no languages: its labels, helps and messages are English, and pages translate them as they are.
Sentences with numbers in them keep their template, which is translated where the engine calls ``say``. Tests compare
these lists with the engine's field specs.
"""

from django.utils.translation import gettext_noop as _

TEXTS = (
    # Of a data file, with its numbers in it: what constants were fitted on.
    _("{runs} published runs of {sources} sources, {first} to {last}"),
    # Of use cases.
    _("Chat assistant"),
    _("mean of 19,366 requests, Azure 2023 conversation trace (CC-BY-4.0)"),
    _("MLPerf server, Llama 3.1 8B"),
    _("Interactive chat"),
    _("MLPerf interactive, Llama 2 70B"),
    _("Code completion"),
    _("mean of 8,819 requests, Azure 2023 code trace (CC-BY-4.0)"),
    _("RAG: answers from documents"),
    _("mean of 3,993 requests, Mooncake synthetic trace (Apache-2.0)"),
    _("assumed: twice chat's wait"),
    _("Summarization"),
    _("mean of 28,257 arXiv papers, lengths published with Vidur (MIT)"),
    _("MLPerf server, Llama 2 70B"),
    _("Agents and tool use"),
    _("means of the Mooncake conversation trace (Apache-2.0), 37 of 100 blocks reusable"),
    _("assumed: chat's wait, interactive pace"),
    _("Batch, no one waiting"),
    _("none: nobody waits"),
    _("Translation"),
    _("assumed: a page of text, as long out as in; no public trace found"),
    # Messages.
    _("Given twice."),
    _("Longer than the model's context."),
    _("Name a model or give its config."),
    _("Needed with the other half."),
    _("Not a JSON object."),
    _("Not a finite number."),
    _("Not a known KV format."),
    _("Not a known choice."),
    _("Not a known weight format."),
    _("Not a list of texts."),
    _("Not a number."),
    _("Not a short text."),
    _("Not a usable key."),
    _("Not a whole number."),
    _("Not above lowest."),
    _("Not in the catalog."),
    _("Not true or false."),
    _("Out of range."),
    _("State the traffic in exactly one way."),
    _("State the traffic."),
    _("Unknown field."),
    _("Unknown kind."),
    # Of jobs.
    _("Queued"),
    _("Running"),
    _("Succeeded"),
    _("Failed"),
    _("Cancelled"),
    # Words inside the engine's sentences.
    _("USD a month"),
    _("capacity and headroom"),
    _("the latency limits"),
    _("list prices"),
    _("one GPU"),
    _("GPUs a node"),
    _("GiB a GPU"),
    _("offers"),
    _("a day"),
)
