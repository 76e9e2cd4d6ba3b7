import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { MetadataSchema } from '@tollgate/proto/envoy/config/core/v3/base';
import {
  Authorization,
  CheckRequestSchema,
  CheckResponseSchema,
} from '@tollgate/proto/envoy/service/auth/v3/external_auth';
import t from 'tap';
import { loadEnvoyMethod } from './envoy-service.ts';
import { sameOnTheWire } from './same-on-the-wire.ts';

const envoy = loadEnvoyMethod(
  'envoy/service/auth/v3/external_auth.proto',
  'envoy.service.auth.v3.Authorization',
  'Check',
);

const http = {
  id: '1',
  method: 'GET',
  path: '/a?b=c',
  host: 'example.com',
  scheme: 'https',
  protocol: 'HTTP/2',
};

t.test('a request whose headers are joined has the same bytes in our definition', async (t) => {
  const message = {
    attributes: {
      request: { http: { ...http, headers: { ':path': '/a?b=c', cookie: 'x' } } },
      contextExtensions: { route: 'app' },
    },
  };
  const twins = { ours: message, envoys: message };
  sameOnTheWire(t, CheckRequestSchema, twins, envoy.requestSerialize, envoy.requestDeserialize);
});

t.test('a request whose headers are raw has the same bytes in our definition', async (t) => {
  const headers = <T>(rawValue: T) => ({ headers: [{ key: 'authorization', rawValue }, { key: 'a' }] });
  const message = <T>(rawValue: T) => ({
    attributes: { request: { http: { ...http, headerMap: headers(rawValue) } } },
  });
  const twins = { ours: message('/wA='), envoys: message(Buffer.from([0xff, 0])) };
  sameOnTheWire(t, CheckRequestSchema, twins, envoy.requestSerialize, envoy.requestDeserialize);
});

t.test('the metadata of the route has the same bytes in our definition', async (t) => {
  const resource = { kind: 'HTTPRoute', namespace: 'shop', name: 'orders', sectionName: 'export' };
  const text = (value: string) => ({ stringValue: value });
  const fields = Object.fromEntries(Object.entries(resource).map(([name, value]) => [name, text(value)]));
  const list = { listValue: { values: [{ structValue: { fields } }] } };
  const http = { method: 'GET' };
  const metadata = { filterMetadata: { 'envoy-gateway': { resources: [resource] } } };
  const bytes = toBinary(MetadataSchema, create(MetadataSchema, metadata));
  const message = <T>(routeMetadataContext: T) => ({
    attributes: { request: { http }, routeMetadataContext },
  });
  const twins = {
    ours: message(Buffer.from(bytes).toString('base64')),
    envoys: message({ filterMetadata: { 'envoy-gateway': { fields: { resources: list } } } }),
  };
  sameOnTheWire(t, CheckRequestSchema, twins, envoy.requestSerialize, envoy.requestDeserialize);
});

t.test('what Envoy tells besides is skipped', async (t) => {
  const bytes = envoy.requestSerialize({
    attributes: {
      source: { address: { socketAddress: { address: '192.0.2.1', portValue: 1 } }, principal: 'spiffe://a' },
      destination: { certificate: 'pem' },
      request: { time: { seconds: 5 }, http: { ...http, size: 7, body: 'b', rawBody: Buffer.from('b') } },
      metadataContext: { filterMetadata: { a: {} } },
      tlsSession: { sni: 'example.com' },
    },
  });
  const read = fromBinary(CheckRequestSchema, bytes, { readUnknownFields: false });
  const address = { address: { case: 'socketAddress', value: { address: '192.0.2.1' } } } as const;
  const attributes = { source: { address }, request: { http: { ...http } } };
  t.same(read, create(CheckRequestSchema, { attributes }));
});

t.test('an answer that lets pass has the same bytes in our definition', async (t) => {
  const overwrite = 'OVERWRITE_IF_EXISTS_OR_ADD';
  sameOnTheWire(
    t,
    CheckResponseSchema,
    {
      ours: {
        status: {},
        okResponse: {
          headers: [
            { header: { key: 'x-auth-plan', value: 'pro' }, appendAction: overwrite },
            { header: { key: 'a', rawValue: '/wA=' }, appendAction: 'ADD_IF_ABSENT' },
            { header: { key: 'b' }, appendAction: 'OVERWRITE_IF_EXISTS' },
          ],
          headersToRemove: ['x-auth-role', 'x-user-id'],
          responseHeadersToAdd: [{ header: { key: 'ratelimit-limit', value: '5' }, appendAction: overwrite }],
        },
        dynamicMetadata: { plan: 'pro', anonymous: false, limit: { requests_per_unit: 5 } },
      },
      envoys: {
        status: {},
        okResponse: {
          headers: [
            { header: { key: 'x-auth-plan', value: 'pro' }, appendAction: 2 },
            { header: { key: 'a', rawValue: Buffer.from([0xff, 0]) }, appendAction: 1 },
            { header: { key: 'b' }, appendAction: 3 },
          ],
          headersToRemove: ['x-auth-role', 'x-user-id'],
          responseHeadersToAdd: [{ header: { key: 'ratelimit-limit', value: '5' }, appendAction: 2 }],
        },
        dynamicMetadata: {
          fields: {
            plan: { stringValue: 'pro' },
            anonymous: { boolValue: false },
            limit: { structValue: { fields: { requests_per_unit: { numberValue: 5 } } } },
          },
        },
      },
    },
    envoy.responseSerialize,
    envoy.responseDeserialize,
  );
});

t.test('an answer that refuses has the same bytes in our definition', async (t) => {
  const message = (code: number) => ({
    status: { code: 16, message: 'no token' },
    deniedResponse: {
      status: { code },
      headers: [{ header: { key: 'www-authenticate', value: 'Bearer' } }],
      body: '{}',
    },
  });
  const twins = { ours: message(401), envoys: message(401) };
  sameOnTheWire(t, CheckResponseSchema, twins, envoy.responseSerialize, envoy.responseDeserialize);
});

t.test('the method has the path that Envoy calls', async (t) => {
  const { check } = Authorization.method;
  t.equal(`/${Authorization.typeName}/${check.name}`, envoy.path);
  t.equal(check.methodKind, 'unary');
});
