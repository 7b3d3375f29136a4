#pragma once

#include <cstddef>
#include <cstdint>

using Class = struct objc_class*;
struct objc_object {
  Class isa;
};
using id = objc_object*;
using SEL = struct objc_selector*;
using IMP = void (*)();
using BOOL = signed char;
using Protocol = struct objc_protocol;
using objc_property_t = struct objc_property*;
struct objc_method_description {
  SEL name;
  char* types;
};

extern "C" {
SEL sel_registerName(const char*);
Class objc_lookUpClass(const char*);
Class objc_getClass(const char*);
Protocol* objc_getProtocol(const char*);
Class object_getClass(id);
objc_method_description protocol_getMethodDescription(Protocol*, SEL, BOOL, BOOL);
}
