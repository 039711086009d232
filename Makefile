# For fingers that know make; everything happens in ./dev.
.PHONY: demo test bench fuzz lint types setup
demo test bench fuzz lint types setup:
	@./dev $@
