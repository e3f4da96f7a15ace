// Host code only: nothing for a GPU in here.
int answer(void) { return 42; }
