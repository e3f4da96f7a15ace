// The same program for the device, which here is this machine, with a library as its image.
void scale(int *data, int count) {
  for (int i = 0; i < count; ++i)
    data[i] *= 2;
}
