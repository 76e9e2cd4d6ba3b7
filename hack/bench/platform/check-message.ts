import { create, toBinary } from '@bufbuild/protobuf';
import { CheckRequestSchema } from '@tollgate/proto/envoy/service/auth/v3/external_auth';

/** The method that Envoy calls. */
export const checkPath = '/envoy.service.auth.v3.Authorization/Check';

/** What Envoy asks about a usual request of a browser or a client library. */
export function writeCheck(token: string): Uint8Array {
  const headers = {
    ':authority': 'shop.example.com',
    ':method': 'GET',
    ':path': '/orders/7?expand=items',
    ':scheme': 'https',
    accept: 'application/json',
    'accept-encoding': 'gzip, deflate, br',
    authorization: `Bearer ${token}`,
    'user-agent':
      'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36',
    'x-forwarded-for': '203.0.113.7',
    'x-forwarded-proto': 'https',
    'x-request-id': '7a3e5b0c-8f0e-4e5e-9d2f-0c9f3f1f2b11',
  };
  const http = {
    id: '1234567890123456789',
    method: 'GET',
    headers,
    path: headers[':path'],
    host: headers[':authority'],
    scheme: 'https',
    protocol: 'HTTP/1.1',
  };
  const message = create(CheckRequestSchema, { attributes: { request: { http } } });
  return toBinary(CheckRequestSchema, message);
}
