__asm__(".globl in_assembly\n in_assembly: .long 0\n .weak weak_in_assembly\n weak_in_assembly: .long 1\n local: .long 2");
int in_c;
