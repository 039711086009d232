"""Videos in the forms of other libraries; each module needs what its library needs.

references   a video as a zarr array: kerchunk's references to its bytes
film_codec   what decodes the chunks of such an array, by zarr's entry point
lerobot      sets of robot episodes in LeRobot's form; with _lance, stored as tables of Lance; with
             _episodes, such sets without some episodes
tar_films    videos inside tar files, such as WebDataset's shards
film_column  a column of videos for Hugging Face datasets
lance_videos  videos in a column of a Lance table
clip_table   windows of a set as rows, for Lance, Ray Data and Daft
"""
