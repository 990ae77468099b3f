/* The driver's half of the test: what a virtio driver does with virtio_ring.c, for a caller in another language. */
#include <linux/virtio.h>
#include <linux/virtio_config.h>
#include <linux/virtio_ring.h>

struct hooks hooks;

void ring_hooks(const struct hooks *h)
{
	hooks = *h;
}

static const struct virtio_config_ops no_ops;

/* A device as a driver has found it, with the features that both the device and virtio_ring.c have. */
struct virtio_device *ring_device(u64 features)
{
	struct virtio_device *device = calloc(1, sizeof(*device));

	device->dev.parent = &device->dev;
	device->config = &no_ops;
	device->features = features;
	INIT_LIST_HEAD(&device->vqs);
	vring_transport_features(device);
	return device;
}

/* Features of the transport, 28 to 41, that are left. */
u64 ring_features(const struct virtio_device *device)
{
	return device->features;
}

void ring_device_free(struct virtio_device *device)
{
	free(device);
}

/* NOTIFICATION_DATA: since Linux 6.4. */
#define NOTIFICATION_DATA 38
u32 __attribute__((weak)) vring_notification_data(struct virtqueue *vq);

static bool notify(struct virtqueue *vq)
{
	bool has_data = virtio_has_feature(vq->vdev, NOTIFICATION_DATA);

	hooks.notify(vq->index, has_data ? vring_notification_data(vq) : vq->index, has_data);
	return true;
}

static void callback(struct virtqueue *vq)
{
	++*(int *)vq->priv;
}

struct virtqueue *ring_queue(struct virtio_device *device, unsigned int index, unsigned int size, u64 areas[3], int *callbacks)
{
	struct virtqueue *vq = vring_create_virtqueue(index, size, 4096, device, true, false, false, notify, callback, "ring");

	if (!vq)
		return NULL;
	vq->priv = callbacks;
	__virtqueue_unbreak(vq);
	areas[0] = virtqueue_get_desc_addr(vq);
	areas[1] = virtqueue_get_avail_addr(vq);
	areas[2] = virtqueue_get_used_addr(vq);
	return vq;
}

struct piece {
	void *at;
	unsigned int length;
};

/* Makes a buffer available: `out` pieces that the device reads, `in` that it writes. */
int ring_add(struct virtqueue *vq, const struct piece *pieces, unsigned int out, unsigned int in, void *token)
{
	struct scatterlist list[256], *lists[2];
	unsigned int n;

	if (out + in > 256)
		return -EINVAL;
	for (n = 0; n < out + in; n++)
		list[n] = (struct scatterlist){ .at = pieces[n].at, .length = pieces[n].length, .last = n + 1 == out || n + 1 == out + in };
	lists[0] = list;
	lists[out > 0] = list + out;
	return virtqueue_add_sgs(vq, lists, out > 0, in > 0, token, GFP_ATOMIC);
}

bool ring_kick(struct virtqueue *vq)
{
	return virtqueue_kick(vq);
}

void *ring_get(struct virtqueue *vq, unsigned int *length)
{
	return virtqueue_get_buf(vq, length);
}

void *ring_detach(struct virtqueue *vq)
{
	return virtqueue_detach_unused_buf(vq);
}

void ring_disable(struct virtqueue *vq)
{
	virtqueue_disable_cb(vq);
}

bool ring_enable(struct virtqueue *vq, bool delayed)
{
	return delayed ? virtqueue_enable_cb_delayed(vq) : virtqueue_enable_cb(vq);
}

int ring_interrupt(struct virtqueue *vq)
{
	return vring_interrupt(0, vq);
}

unsigned int ring_free(const struct virtqueue *vq)
{
	return vq->num_free;
}

void ring_delete(struct virtqueue *vq)
{
	vring_del_virtqueue(vq);
}
