"""The table of all boxes, indented as they nest, and the way from a code to its declaration.

A line names one code, or several that share a layout; after a colon stands the name of the
declaration where it is not the code's own; `opaque` says that there is none. A `*` line holds for
every code inside its parent. A code means the same everywhere, unless a line below another parent
names another declaration. The declarations stand in the files of `_THEMES`, in capital letters.
"""

from __future__ import annotations

import copyreg
from dataclasses import replace
from functools import cache, lru_cache
from importlib import import_module
from pickle import PicklingError
from typing import Any

from fragdex.boxes.layout import BoxLayout
from fragdex.record import record

_THEMES = (
    *("movie", "media", "sample_table", "sample_entries", "fragments"),
    *("video", "audio", "metadata", "encryption", "text"),
)
"""The files of declarations; those of which every movie has boxes stand first."""

TREE = """
ftyp
styp
pdin
free skip wide : free
mdat
imda
moov
    mvhd
    iods
    trak
        tkhd
        tref
            * : track_reference
        trgr
            * : track_group
        tapt
            clef prof enof : aperture
        load
        edts
            elst
        mdia
            mdhd
            hdlr
            elng
            minf
                vmhd
                smhd
                hmhd
                nmhd
                sthd
                gmhd
                    gmin
                    tmcd : gmhd_tmcd
                        tcmi
                    text : gmhd_text
                dinf
                    dref
                        url
                        urn
                        imdt
                        snim
                        alis
                stbl
                    stsd
                        avc1 avc2 avc3 avc4 hvc1 hev1 hvc2 hev2 lhv1 lhe1 : visual_sample_entry
                        vvc1 vvi1 evc1 av01 vp08 vp09 dvh1 dvhe dva1 dvav : visual_sample_entry
                        dav1 encv resv icpv mp4v s263 jpeg mjpa mjpb png : visual_sample_entry
                        apch apcn apcs apco ap4h ap4x mjp2 m2v1 yuvs 2vuy v210 : visual_sample_entry
                            avcC
                            hvcC
                            vvcC
                            av1C
                            vpcC
                            dvcC dvvC dvwC : dolby_vision_config
                            d263
                            btrt
                            pasp
                            clap
                            colr
                            mdcv
                            clli
                            amve
                            SmDm
                            CoLL
                            fiel
                            gama
                            ccst
                            st3d
                            sv3d
                                svhd
                                proj
                                    prhd
                                    equi
                            sinf
                                frma
                                schm
                                schi
                                    tenc
                                    8974dbce-7be7-4c51-84f9-7148f9882554 : piff_tenc
                            rinf
                                stvi
                        alac : audio_sample_entry
                            alac : alac_config
                        mp4a enca Opus fLaC ac-3 ec-3 ac-4 : audio_sample_entry
                        mha1 mha2 mhm1 mhm2 mlpa dtsc dtse dtsh dtsl dtsx : audio_sample_entry
                        samr sawb sawp sowt twos lpcm raw in24 in32 : audio_sample_entry
                        fl32 fl64 ulaw alaw ima4 ipcm fpcm .mp3 : audio_sample_entry
                            esds
                            dOps
                            dfLa
                            dac3
                            dec3
                            dac4
                            ddts
                            dmlp
                            mhaC
                            mhaP
                            pcmC
                            damr
                            srat
                            chnl
                            dmix
                            chan
                            wave
                                enda
                                mp4a : wave_format
                                alac : alac_config
                        wvtt
                            vttC : vttc_config
                            vlab
                        stpp
                        sbtt
                        stxt
                            txtC
                            mime
                        metx
                        mett
                        urim
                            uri
                            uriI
                        tx3g
                            ftab
                        tmcd
                        c608 c708 mp4s : sample_entry
                        text : opaque
                    stts
                    ctts
                    cslg
                    stss
                    stps
                    stsh
                    stsz
                    stz2
                    stsc
                    stco
                    co64
                    sdtp
                    stdp
                    padb
                    sbgp
                    sgpd
                    csgp
                    subs
                    saiz
                    saio
        strk
            stri
            strd
                stsg
    mvex
        mehd
        trex
        leva
        trep
            assp
    pssh
    d08a4f18-10f3-4a82-b6c8-32d8aba183d3 : piff_pssh
    udta
        cprt
        tsel
        kind
        ludt
            tlou alou : loudness
        titl auth dscp perf gnre : titled_text
        name
        chpl
moof
    mfhd
    traf
        tfhd
        tfdt
        trun
        senc
        6d1d9b05-42d5-44e6-80e2-141daff757b2 : piff_tfxd
        d4807ef2-ca39-4695-8e54-26cb9e46a79f : piff_tfrf
        a2394f52-5a9b-4f14-a244-6c427c648df4 : piff_senc
sidx
ssix
prft
emsg
mfra
    tfra
    mfro
meta
    pitm
    iinf
        infe
    idat
    xml
    bxml
    ID32
    keys
        mdta : metadata_key
    ilst
        * : ilst_item
            data : ilst_data
            mean : ilst_text
        ---- : ilst_item
            name : ilst_text
meco
    mere
vttc
    vsid
    iden
    ctim
    sttg
    payl
vtte
vtta
"""


@record(frozen=True, slots=True)
class Entry:
    """One code in the table.

    Attributes:
        code: four letters, `*`, or the 32 hex digits of a user type.
        parents: the codes it nests in; empty: the top level.
        declaration: the name of its declaration, in small letters, or `opaque`.
        depth: how deep it is indented.
    """

    code: str
    parents: tuple[str, ...]
    declaration: str
    depth: int


def _read(tree: str) -> tuple[Entry, ...]:
    table: list[Entry] = []
    above: list[tuple[str, ...]] = []
    last = ""
    for line in tree.splitlines():
        if not line.strip():
            continue
        depth = (len(line) - len(line.lstrip())) // 4
        names, _, declaration = line.partition(" : ")
        codes = tuple(_code(name) for name in names.split())
        parents = above[depth - 1] if depth else ()
        for code in codes:
            own = code.strip().lower().replace("-", "_")
            table.append(Entry(code, parents, declaration.strip() or own, depth))
        if declaration and declaration == last:
            codes = above[depth] + codes  # a line that continues the one before
        last = declaration
        del above[depth:]
        above.append(codes)
    return tuple(table)


def _code(name: str) -> str:
    return name.replace("-", "") if len(name) == 36 else name.ljust(4) if name != "*" else name


def entries() -> tuple[Entry, ...]:
    """The whole table, in its order."""
    return _ENTRIES


_ENTRIES = _read(TREE)
_ANYWHERE: dict[str, str] = {}
_INSIDE: dict[tuple[str, str], str] = {}
_LOADED: dict[tuple[str | None, str], BoxLayout | None] = {}

for _entry in _ENTRIES:
    if _entry.code != "*":
        _ANYWHERE.setdefault(_entry.code, _entry.declaration)
    for _parent in _entry.parents:
        _INSIDE.setdefault((_parent, _entry.code), _entry.declaration)


def layout_of(code: str, parent: str | None = None) -> BoxLayout | None:
    """The declaration of a box; None if it has none and stays opaque.

    Args:
        code: four-letter code, or a user type as 32 hex digits (dashes allowed).
        parent: code of the box around it.

    >>> layout_of("tfdt").title
    'Track Fragment Media Decode Time'
    >>> layout_of("alac", "stsd").title, layout_of("alac", "alac").title
    ('Audio Sample Entry', 'ALAC Specific')
    """
    try:
        return _LOADED[parent, code]
    except KeyError:
        pass
    key = code.replace("-", "").lower() if len(code) > 4 else code
    name = _INSIDE.get((parent or "", key)) or _INSIDE.get((parent or "", "*"))
    name = name or _ANYWHERE.get(key)
    if name is None or name == "opaque":
        return None  # not remembered: a file may hold any number of unknown codes
    layout = _declared(name, key)
    if parent is None or len(_LOADED) < _MAX_LOADED:
        _LOADED[parent, code] = layout
    return layout


_OF_HANDLERS = {
    "vide": "visual_sample_entry",
    "auxv": "visual_sample_entry",
    "pict": "visual_sample_entry",
    "soun": "audio_sample_entry",
}


@lru_cache(maxsize=512)
def layout_of_entry(code: str, handler: str) -> BoxLayout | None:
    """The declaration of a sample entry, which the handler decides (ISO/IEC 14496-12, 8.5.2).

    Args:
        handler: handler_type of its track; "" where it is not known: the code decides.
    """
    name = _OF_HANDLERS.get(handler)
    return layout_of(code, "stsd") if name is None else _declared(name, code)


def _declared(name: str, code: str) -> BoxLayout:
    """The declaration of this name, for this code."""
    layout = _declaration(name)
    return layout if layout.code == code else replace(layout, code=code)


@cache
def _declaration(name: str) -> BoxLayout:
    """Find a declaration; a theme that no box needs is not imported."""
    for theme in _THEMES:
        layout = getattr(import_module(f"fragdex.boxes.{theme}"), name.upper(), None)
        if isinstance(layout, BoxLayout):
            return layout
    raise KeyError(name)


def _pickled(layout: BoxLayout) -> tuple[Any, ...]:
    """Pickle a declaration by its name, and the code it is for."""
    for name in {entry.declaration for entry in _ENTRIES} - {"opaque"}:
        declared = _declaration(name)
        # Declarations for another code share the fields of the one they are made from.
        if declared.fields is layout.fields and (declared.title, declared.source) == (
            layout.title,
            layout.source,
        ):
            return _declared, (name, layout.code)
    raise PicklingError(f"{layout!r} stands in no file of fragdex.boxes")


# Fields of a declaration may hold functions, which cannot be pickled.
copyreg.pickle(BoxLayout, _pickled)

_MAX_LOADED = 4096  # parents come from the file as well
