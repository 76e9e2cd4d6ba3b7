import { fromBinary } from '@bufbuild/protobuf';
import type { HeaderValue } from '@tollgate/proto/envoy/config/core/v3/base';
import type { AttributeContext_HttpRequest } from '@tollgate/proto/envoy/service/auth/v3/attribute_context';
import { CheckRequestSchema } from '@tollgate/proto/envoy/service/auth/v3/external_auth';
import type { AuthzRequest } from '../../domain/authz/authz-request.ts';

/** Reads the request that Envoy asks about. Undefined when the bytes are no such message, or it is not about HTTP. */
export function readCheckRequest(bytes: Uint8Array): AuthzRequest | undefined {
  const http = readHttp(bytes);
  if (http === undefined) return undefined;
  const { method, path, headerMap, headers } = http;
  const facts = { method: method.toUpperCase(), path };
  return headerMap === undefined
    ? { ...facts, ...ofJoined(headers) }
    : { ...facts, ...ofRaw(headerMap.headers) };
}

type Headers = Pick<AuthzRequest, 'authorization' | 'headerNames'>;

function readHttp(bytes: Uint8Array): AttributeContext_HttpRequest | undefined {
  try {
    // What we have no use for would be kept as bytes otherwise, the body of the request among them.
    const check = fromBinary(CheckRequestSchema, bytes, { readUnknownFields: false });
    return check.attributes?.request?.http;
  } catch {
    return undefined;
  }
}

function ofJoined(headers: Readonly<Record<string, string | undefined>>): Headers {
  const { authorization } = headers;
  return {
    authorization: authorization === undefined ? [] : [authorization],
    headerNames: Object.keys(headers),
  };
}

function ofRaw(headers: readonly HeaderValue[]): Headers {
  const named = headers.map((header) => ({ header, name: header.key.toLowerCase() }));
  return {
    authorization: named.flatMap(({ header, name }) => (name === 'authorization' ? [textOf(header)] : [])),
    headerNames: [...new Set(named.map(({ name }) => name))],
  };
}

/** One character a byte, as HTTP/1 does it: nothing that is no ASCII becomes another text. */
function textOf({ value, rawValue }: HeaderValue): string {
  return rawValue.length === 0 ? value : Buffer.from(rawValue).toString('latin1');
}
