"""Engines that recognize speech, behind one contract; each imports its package when it is opened.

contract      what an engine promises, and how one is chosen
pocketsphinx  the default: small, English, plain
whisper       faster-whisper (extra `whisper`): Whisper models on CPU and GPU
sherpa        sherpa-onnx (extra `sherpa`): transducer and CTC models, parakeet among them
choosing      from a name to an engine
"""

from fragdex.service.transcriptions.engines.choosing import ENGINES, make_engine, need_package
from fragdex.service.transcriptions.engines.contract import Engine, EngineChoice

__all__ = ["ENGINES", "Engine", "EngineChoice", "make_engine", "need_package"]
