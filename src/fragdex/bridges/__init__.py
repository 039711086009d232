"""Films in the forms of other libraries; each module needs what its library needs.

references   a film as a zarr array: kerchunk's references to its bytes
film_codec   what decodes the chunks of such an array, by zarr's entry point
lerobot      sets of robot episodes in LeRobot's form
"""
