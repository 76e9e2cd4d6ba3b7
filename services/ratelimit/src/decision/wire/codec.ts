import { fromBinary, toBinary } from '@bufbuild/protobuf';
import { MessageReader } from '@tollgate/kit/grpc/message-reader';
import {
  RateLimitRequestSchema,
  RateLimitResponseSchema,
} from '@tollgate/proto/envoy/service/ratelimit/v3/rls';
import type { Entry } from '@tollgate/rules/match';
import { errors } from '../../errors.ts';
import { type Descriptor, type RateLimitRequest, unitToWire } from './request.ts';
import { type Decision, type DescriptorStatus, type Header, toMessage } from './response.ts';

// The messages of Envoy's usual calls are read and written here, without reflection, which costs
// more than a decision. Everything unusual is left to protobuf-es: fields that are rare, unknown or
// repeated against the definition, text outside ASCII, and malformed messages.

/**
 * Decodes a binary request.
 *
 * @throws AppError `malformed_request`.
 */
export function decodeRequest(bytes: Uint8Array): RateLimitRequest {
  const request = readRequest(new MessageReader(bytes));
  if (request !== undefined) return request;
  try {
    return fromBinary(RateLimitRequestSchema, bytes);
  } catch (cause) {
    throw errors.malformed_request({ cause });
  }
}

/** Encodes a decision as a RateLimitResponse. */
export function encodeDecision(decision: Decision): Uint8Array {
  return writeDecision(decision) ?? toBinary(RateLimitResponseSchema, toMessage(decision));
}

/** A field number × 8 + the wire type. */
const tags = {
  domain: 0x0a,
  descriptor: 0x12,
  hitsAddend: 0x18,
  entry: 0x0a,
  key: 0x0a,
  value: 0x12,
} as const;

/** Undefined when the request has anything unusual. */
function readRequest(reader: MessageReader): RateLimitRequest | undefined {
  let domain = '';
  let hitsAddend = 0;
  const descriptors: Descriptor[] = [];
  while (reader.hasField(reader.end)) {
    switch (reader.readTag()) {
      case tags.domain:
        domain = reader.readText(reader.end);
        break;
      case tags.descriptor:
        descriptors.push({ entries: readEntries(reader) });
        break;
      case tags.hitsAddend:
        hitsAddend = reader.readNumber();
        break;
      default:
        return undefined;
    }
  }
  return reader.failed ? undefined : { domain, descriptors, hitsAddend };
}

function readEntries(reader: MessageReader): Entry[] {
  const entries: Entry[] = [];
  const end = reader.readEnd(reader.end);
  while (reader.hasField(end)) {
    if (reader.readTag() === tags.entry) entries.push(readEntry(reader, end));
    else reader.failed = true;
  }
  return entries;
}

function readEntry(reader: MessageReader, limit: number): Entry {
  let key = '';
  let value = '';
  const end = reader.readEnd(limit);
  while (reader.hasField(end)) {
    const tag = reader.readTag();
    if (tag === tags.key) key = reader.readText(end);
    else if (tag === tags.value) value = reader.readText(end);
    else reader.failed = true;
  }
  return { key, value };
}

/** Undefined when the decision has anything unusual. */
function writeDecision({
  overallCode,
  statuses,
  responseHeaders,
  dynamicMetadata,
}: Decision): Uint8Array | undefined {
  if (dynamicMetadata !== undefined) return undefined;
  let bytes = 2;
  for (const status of statuses) {
    if (status.currentLimit !== undefined && !isShortAscii(status.currentLimit.name)) return undefined;
    bytes += 2 + statusBytes(status);
  }
  for (const { key, value } of responseHeaders) {
    if (!isShortAscii(key) || !isShortAscii(value)) return undefined;
    bytes += 2 + textBytes(key) + textBytes(value);
  }
  const target = Buffer.allocUnsafe(bytes);
  target[0] = 0x08;
  target[1] = overallCode;
  let at = 2;
  for (const status of statuses) at = writeStatus(target, at, status);
  for (const header of responseHeaders) at = writeHeader(target, at, header);
  return target;
}

/** The lengths of messages with such texts need one byte. */
const maxShortText = 48;

function isShortAscii(text: string): boolean {
  if (text.length > maxShortText) return false;
  for (let at = 0; at < text.length; at += 1) if (text.charCodeAt(at) >= 0x80) return false;
  return true;
}

/** Size of a text field, which is absent when it is empty. */
function textBytes(text: string): number {
  return text === '' ? 0 : 2 + text.length;
}

/** Size of a number field, which is absent when it is 0. */
function numberBytes(value: number): number {
  if (value === 0) return 0;
  if (value < 0x80) return 2;
  if (value < 0x4000) return 3;
  if (value < 0x20_0000) return 4;
  return value < 0x1000_0000 ? 5 : 6;
}

/** DescriptorStatus without its tag and length; the code is never 0. */
function statusBytes({ currentLimit, limitRemaining, secondsUntilReset }: DescriptorStatus): number {
  const limit = currentLimit === undefined ? 0 : 2 + limitBytes(currentLimit);
  const reset = secondsUntilReset === undefined ? 0 : 2 + numberBytes(secondsUntilReset);
  return 2 + limit + numberBytes(limitRemaining) + reset;
}

type CurrentLimit = NonNullable<DescriptorStatus['currentLimit']>;

/** RateLimit without its tag and length. */
function limitBytes({ requestsPerUnit, unit, name }: CurrentLimit): number {
  return numberBytes(requestsPerUnit) + (unit === undefined ? 0 : 2) + textBytes(name);
}

function writeStatus(target: Buffer, start: number, status: DescriptorStatus): number {
  const { code, currentLimit, limitRemaining, secondsUntilReset } = status;
  let at = start;
  target[at++] = 0x12;
  target[at++] = statusBytes(status);
  target[at++] = 0x08;
  target[at++] = code;
  if (currentLimit !== undefined) {
    target[at++] = 0x12;
    target[at++] = limitBytes(currentLimit);
    at = writeNumber(target, at, 0x08, currentLimit.requestsPerUnit);
    at = writeNumber(target, at, 0x10, unitToWire(currentLimit.unit));
    at = writeText(target, at, 0x1a, currentLimit.name);
  }
  at = writeNumber(target, at, 0x18, limitRemaining);
  if (secondsUntilReset === undefined) return at;
  target[at++] = 0x22;
  target[at++] = numberBytes(secondsUntilReset);
  return writeNumber(target, at, 0x08, secondsUntilReset);
}

function writeHeader(target: Buffer, start: number, { key, value }: Header): number {
  target[start] = 0x1a;
  target[start + 1] = textBytes(key) + textBytes(value);
  return writeText(target, writeText(target, start + 2, 0x0a, key), 0x12, value);
}

function writeText(target: Buffer, start: number, tag: number, text: string): number {
  if (text === '') return start;
  target[start] = tag;
  target[start + 1] = text.length;
  return start + 2 + target.write(text, start + 2, 'latin1');
}

/** @param value unsigned, of 32 bits. */
function writeNumber(target: Buffer, start: number, tag: number, value: number): number {
  if (value === 0) return start;
  let at = start;
  target[at++] = tag;
  let rest = value >>> 0;
  for (; rest >= 0x80; rest >>>= 7) target[at++] = (rest & 0x7f) | 0x80;
  target[at++] = rest;
  return at;
}
