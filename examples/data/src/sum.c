// target-region.h is the name that regenerate.sh gives to target-region.txt.
#include "target-region.h"
