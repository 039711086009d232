"""sdtp: what each sample depends on, and what on it (ISO/IEC 14496-12, 8.6.4)."""

from fragdex.boxes.layout import fullbox, rows

SDTP = fullbox(
    "sdtp",
    "Independent and Disposable Samples",
    "ISO/IEC 14496-12, 8.6.4",
    entries=rows(
        None,
        (
            "is_leading:2 sample_depends_on:2 sample_is_depended_on:2 sample_has_redundancy:2",
            ">u1",
        ),
    ),
)
