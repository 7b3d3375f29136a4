#pragma once

using kern_return_t = int;
using mach_port_t = unsigned;
using task_id_token_t = mach_port_t;
