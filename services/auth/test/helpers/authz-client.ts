import { create, fromBinary, type JsonObject, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { type ChannelCredentials, Client, credentials } from '@grpc/grpc-js';
import { MetadataSchema } from '@tollgate/proto/envoy/config/core/v3/base';
import {
  CheckRequestSchema,
  type CheckResponse,
  CheckResponseSchema,
} from '@tollgate/proto/envoy/service/auth/v3/external_auth';
import {
  HealthCheckRequestSchema,
  HealthCheckResponseSchema,
  type HealthCheckResponse_ServingStatus as ServingStatus,
} from '@tollgate/proto/grpc/health/v1/health';
import type t from 'tap';

/** A gRPC client that sends checks as Envoy does. */
export interface AuthzClient {
  /** Checks an HTTP request. */
  check(http: HttpAttributes, options?: CheckOptions): Promise<CheckResponse>;
  /** Sends bytes as a check. */
  send(bytes: Uint8Array, timeoutMs?: number): Promise<CheckResponse>;
  health(service: string): Promise<ServingStatus>;
  /** Calls `onStatus` with each response of Watch. Resolves when the server ends the stream. */
  watch(service: string, onStatus: (status: ServingStatus) => void): Promise<void>;
}

type Attributes = NonNullable<MessageInitShape<typeof CheckRequestSchema>['attributes']>;
type HttpAttributes = NonNullable<NonNullable<Attributes['request']>['http']>;

interface CheckOptions {
  readonly timeoutMs?: number;
  readonly source?: NonNullable<Attributes['source']>;
  /** The route that the gateway has matched, as Envoy Gateway sends it. */
  readonly route?: JsonObject;
}

/** Generous, because test machines are busy. */
const patienceMs = 30_000;

/** Connects to a local port. The client is closed when the test ends. */
export function connectAuthz(
  test: Pick<typeof t, 'teardown'>,
  port: number,
  channel: ChannelCredentials = credentials.createInsecure(),
): AuthzClient {
  const client = new Client(`localhost:${port}`, channel, {
    // The lookup of a TXT record would keep the process alive where no name server answers.
    'grpc.service_config_disable_resolution': 1,
  });
  test.teardown(() => client.close());
  const call = (path: string, bytes: Uint8Array, timeoutMs = patienceMs): Promise<Uint8Array> =>
    new Promise((resolve, reject) => {
      client.makeUnaryRequest(
        path,
        toBuffer,
        (message: Buffer) => new Uint8Array(message),
        bytes,
        { deadline: Date.now() + timeoutMs },
        (error, reply) => (reply === undefined ? reject(error) : resolve(reply)),
      );
    });
  const send = async (bytes: Uint8Array, timeoutMs?: number): Promise<CheckResponse> =>
    fromBinary(
      CheckResponseSchema,
      await call('/envoy.service.auth.v3.Authorization/Check', bytes, timeoutMs),
    );
  return {
    send,
    check(http, { timeoutMs, source, route } = {}) {
      const attributes = {
        ...{ request: { http }, ...(source && { source }) },
        ...(route && { routeMetadataContext: routeMetadata(route) }),
      };
      return send(toBinary(CheckRequestSchema, create(CheckRequestSchema, { attributes })), timeoutMs);
    },
    async health(service) {
      const reply = await call('/grpc.health.v1.Health/Check', healthRequest(service));
      return fromBinary(HealthCheckResponseSchema, reply).status;
    },
    watch(service, onStatus) {
      const stream = client.makeServerStreamRequest(
        '/grpc.health.v1.Health/Watch',
        toBuffer,
        (message: Buffer) => message,
        healthRequest(service),
      );
      stream.on('data', (reply: Buffer) => onStatus(fromBinary(HealthCheckResponseSchema, reply).status));
      return new Promise((resolve, reject) => {
        stream.on('end', resolve);
        stream.on('error', reject);
      });
    },
  };
}

function routeMetadata(resource: JsonObject): Uint8Array {
  const filterMetadata = { 'envoy-gateway': { resources: [resource] } };
  return toBinary(MetadataSchema, create(MetadataSchema, { filterMetadata }));
}

const toBuffer = (message: Uint8Array): Buffer => Buffer.from(message);

const healthRequest = (service: string): Uint8Array =>
  toBinary(HealthCheckRequestSchema, create(HealthCheckRequestSchema, { service }));

/** The parts of a response that tests compare. */
export function summary(response: CheckResponse) {
  const { status, httpResponse, dynamicMetadata } = response;
  const code = status?.code;
  if (httpResponse.case === 'okResponse') {
    const { headers, headersToRemove, responseHeadersToAdd } = httpResponse.value;
    const response = named(responseHeadersToAdd);
    return { code, set: named(headers), remove: headersToRemove, response, metadata: dynamicMetadata };
  }
  if (httpResponse.case !== 'deniedResponse') throw new Error('unexpected response');
  const { status: httpStatus, headers, body } = httpResponse.value;
  return {
    code,
    errorCode: status?.message,
    httpStatus: httpStatus?.code,
    headers: named(headers),
    body: body.startsWith('<') ? body : (JSON.parse(body) as unknown),
    metadata: dynamicMetadata,
  };
}

function named(
  headers: readonly { readonly header?: { readonly key: string; readonly value: string } | undefined }[],
): Readonly<Record<string, string | undefined>> {
  return Object.fromEntries(headers.map(({ header }) => [header?.key ?? '', header?.value]));
}
