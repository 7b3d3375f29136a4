#pragma once

#include <TargetConditionals.h>

#include <cstdint>

extern "C" {
using CFTypeRef = const void*;
using CFStringRef = const struct __CFString*;
using CFTimeInterval = double;
using CFAbsoluteTime = double;
CFTypeRef CFRetain(CFTypeRef);
void CFRelease(CFTypeRef);
}
