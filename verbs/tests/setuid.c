/* How many devices a program sees. */
#include <infiniband/verbs.h>
#include <stdio.h>

int main(void)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);
	ibv_free_device_list(list);
	printf("%d devices\n", n);
	return 0;
}
