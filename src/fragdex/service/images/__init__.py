"""Image files: JPEG, PNG, WebP and SVG, kept as they came, measured without decoding a pixel."""
