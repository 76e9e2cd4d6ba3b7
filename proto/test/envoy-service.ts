import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadSync, type MethodDefinition } from '@grpc/proto-loader';

/**
 * Envoy's own definitions, as @grpc/grpc-js-xds ships them; found from its main file,
 * build/src/index.js.
 */
const definitions = resolve(dirname(fileURLToPath(import.meta.resolve('@grpc/grpc-js-xds'))), '../../deps');

/** Messages as proto-loader takes and gives them: plain objects. */
type Envoys = MethodDefinition<object, object, object, object>;

/**
 * A method as Envoy's own definitions describe it, with functions that encode and decode its
 * messages. Only set fields are decoded; enums are numbers.
 */
export function loadEnvoyMethod(file: string, serviceName: string, methodName: string): Envoys {
  const loaded = loadSync(file, {
    includeDirs: ['envoy-api', 'googleapis', 'protoc-gen-validate', 'xds'].map((tree) =>
      resolve(definitions, tree),
    ),
    longs: Number,
    enums: Number,
    oneofs: false,
  });
  // Besides services the package has messages and enums, which proto-loader's types cannot tell
  // apart.
  const service = loaded[serviceName] as Record<string, Envoys> | undefined;
  const method = service?.[methodName];
  if (method === undefined) throw new Error(`no ${serviceName}.${methodName} below ${definitions}`);
  return method;
}
