# For fingers that know make; everything happens in ./dev.
.PHONY: demo test coverage bench bench-service bench-render bench-frames bench-gpu bench-transcribe fleet fuzz lint types setup
demo test coverage bench bench-service bench-render bench-frames bench-gpu bench-transcribe fleet fuzz lint types setup:
	@./dev $@
