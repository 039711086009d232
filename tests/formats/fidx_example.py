from fragdex.formats import fidx
from fragdex.fragments.table import FragmentTable, SyncTable
from fragdex.fragments.track_info import Movie, TrackInfo
from fragdex.seeking.model import FileInfo, How, Index, Period, Track

info = TrackInfo(1, "vide", "video", 25, "avc1", "avc1.42c01e")
fragments = FragmentTable.of(
    {
        "offset": [700], "size": [300], "moof_offset": [700],
        "data_start": [808], "data_stop": [1000],
        "dts": [0], "duration": [2], "cts_min": [0], "cts_end": [2],
        "sample_start": [0], "sample_count": [2], "first_sync": [0], "flags": [0],
    }
)  # fmt: skip
sync = SyncTable.of(
    {
        "cts": [0], "dts": [0], "step": [0], "count": [1],
        "sample": [0], "sample_step": [0], "fragment": [0],
    }
)  # fmt: skip
track = Track(info, fragments, sync)
period = Period(0, (), Movie(25, 0, True, (info,)), (track,))
index = Index(FileInfo("a.mp4", 1000), How("boxes", True), [period])
data = fidx.write(index)
