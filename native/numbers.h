/* Big-endian numbers, spelled out and not written as loops, so that compilers make one instruction of each. */

#ifndef CORDWOOD_NUMBERS_H
#define CORDWOOD_NUMBERS_H

#include <stdint.h>

static inline uint16_t u16_at(const uint8_t *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}

static inline uint32_t u32_at(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static inline uint64_t u64_at(const uint8_t *at)
{
    return (uint64_t)u32_at(at) << 32 | u32_at(at + 4);
}

static inline int16_t i16_at(const uint8_t *at)
{
    return (int16_t)u16_at(at);
}

static inline int32_t i32_at(const uint8_t *at)
{
    return (int32_t)u32_at(at);
}

static inline int64_t i64_at(const uint8_t *at)
{
    return (int64_t)u64_at(at);
}

static inline void put_u16(uint8_t *at, uint16_t number)
{
    at[0] = (uint8_t)(number >> 8);
    at[1] = (uint8_t)number;
}

static inline void put_u32(uint8_t *at, uint32_t number)
{
    at[0] = (uint8_t)(number >> 24);
    at[1] = (uint8_t)(number >> 16);
    at[2] = (uint8_t)(number >> 8);
    at[3] = (uint8_t)number;
}

static inline void put_u64(uint8_t *at, uint64_t number)
{
    put_u32(at, (uint32_t)(number >> 32));
    put_u32(at + 4, (uint32_t)number);
}

#endif
