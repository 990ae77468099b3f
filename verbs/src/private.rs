//! Names that rdma-core's own providers (libmlx5, libefa) want from libibverbs before they can be loaded; programs such as UCX and libfabric are
//! linked with some. Registering a provider is accepted and forgotten, since no device here is one of theirs; nothing else is ever called.
use crate::errors::set_errno;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

macro_rules! never_called {
    ($( $name:ident )*) => {
        $(
            #[no_mangle]
            extern "C" fn $name() -> c_int {
                log::error!("{} was called: a provider of rdma-core has met a device that is not its own", stringify!($name));
                libc::ENOSYS
            }
        )*
    };
}

never_called! {
    __ioctl_final_num_attrs _verbs_init_and_alloc_context execute_ioctl ibv_cmd_advise_mr ibv_cmd_alloc_dm ibv_cmd_alloc_mw
    ibv_cmd_alloc_pd ibv_cmd_attach_mcast ibv_cmd_close_xrcd ibv_cmd_create_ah ibv_cmd_create_counters ibv_cmd_create_cq ibv_cmd_create_cq_ex ibv_cmd_create_cq_ex2
    ibv_cmd_create_flow ibv_cmd_create_flow_action_esp ibv_cmd_create_qp ibv_cmd_create_qp_ex ibv_cmd_create_qp_ex2 ibv_cmd_create_rwq_ind_table
    ibv_cmd_create_srq ibv_cmd_create_srq_ex ibv_cmd_create_wq ibv_cmd_dealloc_mw ibv_cmd_dealloc_pd ibv_cmd_dereg_mr ibv_cmd_destroy_ah
    ibv_cmd_destroy_counters ibv_cmd_destroy_cq ibv_cmd_destroy_flow ibv_cmd_destroy_flow_action ibv_cmd_destroy_qp ibv_cmd_destroy_rwq_ind_table
    ibv_cmd_destroy_srq ibv_cmd_destroy_wq ibv_cmd_detach_mcast ibv_cmd_free_dm ibv_cmd_get_context ibv_cmd_modify_cq ibv_cmd_modify_flow_action_esp
    ibv_cmd_modify_qp ibv_cmd_modify_qp_ex ibv_cmd_modify_srq ibv_cmd_modify_wq ibv_cmd_open_qp ibv_cmd_open_xrcd ibv_cmd_poll_cq ibv_cmd_post_recv
    ibv_cmd_post_send ibv_cmd_post_srq_recv ibv_cmd_query_context ibv_cmd_query_device_any ibv_cmd_query_mr ibv_cmd_query_port ibv_cmd_query_qp
    ibv_cmd_query_srq ibv_cmd_read_counters ibv_cmd_reg_dm_mr ibv_cmd_reg_dmabuf_mr ibv_cmd_reg_mr ibv_cmd_req_notify_cq ibv_cmd_rereg_mr
    ibv_cmd_resize_cq ibv_cmd_alloc_dmah ibv_cmd_free_dmah ibv_cmd_reg_mr_ex ibv_cmd_query_port_speed ibv_cmd_export_dmabuf_fd verbs_allow_disassociate_destroy verbs_init_cq verbs_open_device
    verbs_set_ops verbs_uninit_context
    ibv_copy_ah_attr_from_kern ibv_copy_path_rec_from_kern ibv_copy_path_rec_to_kern ibv_copy_qp_attr_from_kern
}

/// What providers say of devices that are not theirs.
#[no_mangle]
extern "C" fn __verbs_log() {}

#[no_mangle]
extern "C" fn verbs_register_driver_34(_ops: *const c_void) {}

#[no_mangle]
extern "C" fn ibv_register_driver(_name: *const c_char, _init: *const c_void) {}

#[no_mangle]
extern "C" fn ibv_read_ibdev_sysfs_file(_buf: *mut c_char, _size: usize, _device: *const c_void, _format: *const c_char) -> c_int {
    -1
}

macro_rules! no_imports {
    ($( $import:ident $unimport:ident )*) => { $(
        #[no_mangle]
        extern "C" fn $import(_: *mut c_void, _: u32) -> *mut c_void {
            set_errno(libc::EOPNOTSUPP);
            null_mut()
        }
        #[no_mangle]
        extern "C" fn $unimport(_: *mut c_void) {}
    )* };
}

no_imports! { ibv_import_pd ibv_unimport_pd ibv_import_mr ibv_unimport_mr ibv_import_dm ibv_unimport_dm }
