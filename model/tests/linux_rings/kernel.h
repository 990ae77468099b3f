/* What Linux' virtio_ring.c takes from the kernel, for a program of user space: types, allocation, lists, scatter lists. It is included in front of every file (-include), and the headers
 * that virtio_ring.c names are empty, but for those of virtio itself, which are Linux' own.
 *
 * Two things are not as harmless as in a program: memory barriers, at which the device gets its turn, and the DMA interface, which maps and unmaps what the device may touch. Both call
 * the test (struct hooks). */
#ifndef FERRIC_KERNEL_H
#define FERRIC_KERNEL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8, __u8;
typedef uint16_t u16, __u16, __le16, __be16;
typedef uint32_t u32, __u32, __le32, __be32;
typedef uint64_t u64, __u64, __le64, __be64;
typedef int16_t s16, __s16;
typedef int32_t s32, __s32;
typedef int64_t s64, __s64;
typedef unsigned int gfp_t;
typedef u64 dma_addr_t, phys_addr_t;
typedef s64 ktime_t;
typedef int irqreturn_t;
typedef int spinlock_t;

#define __bitwise
#define __force
#define __always_inline inline __attribute__((always_inline))
#define __must_check
#define likely(x) (x)
#define unlikely(x) (x)
#define data_race(x) (x)
#define READ_ONCE(x) (*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, v) (*(volatile __typeof__(x) *)&(x) = (v))
#define EXPORT_SYMBOL_GPL(x)
#define MODULE_LICENSE(x)
#define MODULE_DESCRIPTION(x)
#define fallthrough __attribute__((fallthrough))
#define BIT(n) (1UL << (n))
#define BIT_ULL(n) (1ULL << (n))
#define BUILD_BUG_ON(x) ((void)0)
#define typecheck(a, b) 1
#define might_sleep()
#define swap(a, b) do { __typeof__(a) t_ = (a); (a) = (b); (b) = t_; } while (0)
#define min(a, b) ((a) < (b) ? (a) : (b))
#define container_of(p, type, member) ((type *)((char *)(p) - offsetof(type, member)))
#define container_of_const container_of

enum { IRQ_NONE, IRQ_HANDLED };
#define ENOSPC 28
#define ENOMEM 12
#define EIO 5
#define EINVAL 22
#define ENOENT 2
#define EBUSY 16
#define EPERM 1
#define E2BIG 7
#define ENODEV 19

/* The driver must never find fault with the device. */
#define FAULT(...) (fprintf(stderr, "virtio_ring.c: " __VA_ARGS__), hooks.fault())
#define dev_err(d, ...) FAULT(__VA_ARGS__)
#define dev_warn(d, ...) FAULT(__VA_ARGS__)
#define dev_warn_once(d, ...) FAULT(__VA_ARGS__)
#define dev_WARN_ONCE(d, c, ...) ({ bool c_ = (c); if (c_) FAULT(__VA_ARGS__); c_; })
#define panic(...) FAULT(__VA_ARGS__)
#define pr_debug(...) do { } while (0)
#define WARN_ON(x) ({ bool w_ = (x); if (w_) FAULT("%s\n", #x); w_; })
#define WARN_ON_ONCE WARN_ON
#define BUG_ON(x) do { if (x) { FAULT("%s\n", #x); abort(); } } while (0)
#define BUG() BUG_ON(true)

/* The test. */
struct hooks {
	void (*barrier)(void);
	void (*fault)(void);
	/* Maps memory for the device: for 1 it reads it, for 2 it writes it, for 0 both. */
	u64 (*map)(void *at, u64 bytes, int direction);
	void (*unmap)(u64 address, u64 bytes);
	void (*notify)(unsigned int queue, u32 data, bool has_data);
};
extern struct hooks hooks;

#define mb() hooks.barrier()
#define virt_mb() hooks.barrier()
#define virt_rmb() hooks.barrier()
#define virt_wmb() hooks.barrier()
#define dma_rmb() hooks.barrier()
#define dma_wmb() hooks.barrier()
#define virt_store_mb(x, v) do { WRITE_ONCE(x, v); mb(); } while (0)

/* The machine is little-endian. */
#define cpu_to_le16(x) (x)
#define cpu_to_le32(x) (x)
#define cpu_to_le64(x) (x)
#define le16_to_cpu(x) (x)
#define le32_to_cpu(x) (x)
#define le64_to_cpu(x) (x)
#define cpu_to_be16 __builtin_bswap16
#define cpu_to_be32 __builtin_bswap32
#define cpu_to_be64 __builtin_bswap64
#define be16_to_cpu __builtin_bswap16
#define be32_to_cpu __builtin_bswap32
#define be64_to_cpu __builtin_bswap64

#define PAGE_SIZE 4096UL
#define PAGE_ALIGN(x) (((x) + PAGE_SIZE - 1) & ~(PAGE_SIZE - 1))
#define offset_in_page(p) ((unsigned long)(p) & (PAGE_SIZE - 1))
enum { GFP_KERNEL, GFP_ATOMIC, __GFP_NOWARN = 0, __GFP_ZERO = 4, __GFP_HIGHMEM = 8, __GFP_HIGH = 16 };

static inline void *kmalloc(size_t bytes, gfp_t gfp)
{
	return gfp & __GFP_ZERO ? calloc(1, bytes) : malloc(bytes);
}
#define kzalloc(bytes, gfp) kmalloc(bytes, (gfp) | __GFP_ZERO)
#define kmalloc_array(n, bytes, gfp) kmalloc((size_t)(n) * (bytes), gfp)
#define kcalloc(n, bytes, gfp) kzalloc((size_t)(n) * (bytes), gfp)
#define gfp_or_kernel(gfp, ...) (gfp)
#define kmalloc_obj(x, ...) ((__typeof__(x) *)kmalloc(sizeof(x), gfp_or_kernel(__VA_ARGS__ __VA_OPT__(,) GFP_KERNEL)))
#define kmalloc_objs(x, n, ...) ((__typeof__(x) *)kmalloc_array(n, sizeof(x), gfp_or_kernel(__VA_ARGS__ __VA_OPT__(,) GFP_KERNEL)))
#define kzalloc_obj(x, ...) ((__typeof__(x) *)kzalloc(sizeof(x), GFP_KERNEL))
#define kzalloc_objs(x, n, ...) ((__typeof__(x) *)kcalloc(n, sizeof(x), GFP_KERNEL))
#define kfree(p) free((void *)(p))
static inline void *alloc_pages_exact(size_t bytes, gfp_t gfp)
{
	void *p = aligned_alloc(PAGE_SIZE, PAGE_ALIGN(bytes));

	if (p && gfp & __GFP_ZERO)
		memset(p, 0, PAGE_ALIGN(bytes));
	return p;
}
#define free_pages_exact(p, bytes) free(p)
#define is_vmalloc_addr(p) false
#define is_power_of_2(n) ((n) && !((n) & ((n) - 1)))

struct list_head {
	struct list_head *next, *prev;
};
static inline void INIT_LIST_HEAD(struct list_head *head)
{
	head->next = head->prev = head;
}
static inline void list_add_tail(struct list_head *entry, struct list_head *head)
{
	entry->next = head;
	entry->prev = head->prev;
	head->prev->next = entry;
	head->prev = entry;
}
static inline void list_del(struct list_head *entry)
{
	entry->prev->next = entry->next;
	entry->next->prev = entry->prev;
}
#define list_for_each_entry(p, head, member) \
	for (p = container_of((head)->next, __typeof__(*p), member); &p->member != (head); p = container_of(p->member.next, __typeof__(*p), member))

#define spin_lock(l) ((void)(l))
#define spin_unlock(l) ((void)(l))
#define spin_lock_irq(l) ((void)(l))
#define spin_unlock_irq(l) ((void)(l))

struct device {
	struct device *parent;
	void *driver_data;
};
struct device_driver {
	const char *name;
};
struct virtio_device_id {
	u32 device, vendor;
};
struct completion {
	int done;
};
struct irq_affinity;
struct cpumask;
struct module;
struct dentry;

/* A buffer's page is named by the buffer's own address, so that the offset in it is 0. */
struct page;
struct scatterlist {
	void *at;
	unsigned int length, offset;
	bool last;
};
#define sg_next(sg) ((sg)->last ? NULL : (sg) + 1)
#define sg_page(sg) ((struct page *)(sg)->at)
#define sg_phys(sg) ((u64)(sg)->at)
#define sg_dma_address(sg) ((u64)(sg)->at)
#define sg_dma_len(sg) ((sg)->length)
#define virt_to_phys(p) ((u64)(p))
#define virt_to_page(p) ((struct page *)((unsigned long)(p) & ~(PAGE_SIZE - 1)))
#define kmsan_handle_dma(...) ((void)0)
#define xen_domain() false

enum dma_data_direction { DMA_BIDIRECTIONAL, DMA_TO_DEVICE, DMA_FROM_DEVICE, DMA_NONE };
#define DMA_MAPPING_ERROR (~0ULL)
#define DMA_ATTR_SKIP_CPU_SYNC 32
#define DMA_ATTR_DEBUGGING_IGNORE_CACHELINES 64
#define dma_mapping_error(d, a) ((a) == DMA_MAPPING_ERROR ? -ENOMEM : 0)
#define dma_max_mapping_size(d) ((size_t)UINT_MAX)
#define dma_need_sync(d, a) false
#define dma_sync_single_range_for_cpu(...) ((void)0)
#define dma_sync_single_range_for_device(...) ((void)0)
#define dma_map_page(d, page, off, bytes, dir) hooks.map((char *)(page) + (off), bytes, dir)
#define dma_map_page_attrs(d, page, off, bytes, dir, attrs) dma_map_page(d, page, off, bytes, dir)
#define dma_map_single(d, p, bytes, dir) hooks.map(p, bytes, dir)
#define dma_map_single_attrs(d, p, bytes, dir, attrs) hooks.map(p, bytes, dir)
#define dma_unmap_page(d, a, bytes, dir) hooks.unmap(a, bytes)
#define dma_unmap_page_attrs(d, a, bytes, dir, attrs) hooks.unmap(a, bytes)
#define dma_unmap_single(d, a, bytes, dir) hooks.unmap(a, bytes)
#define dma_unmap_single_attrs(d, a, bytes, dir, attrs) hooks.unmap(a, bytes)
static inline void *dma_alloc_coherent(struct device *d, size_t bytes, dma_addr_t *address, gfp_t gfp)
{
	void *p = alloc_pages_exact(bytes, gfp | __GFP_ZERO);

	*address = hooks.map(p, bytes, DMA_BIDIRECTIONAL);
	return p;
}
static inline void dma_free_coherent(struct device *d, size_t bytes, void *p, dma_addr_t address)
{
	hooks.unmap(address, bytes);
	free(p);
}

#define ktime_get() 0
#define ktime_sub(a, b) ((a) - (b))
#define ktime_to_ms(t) (t)

#endif
