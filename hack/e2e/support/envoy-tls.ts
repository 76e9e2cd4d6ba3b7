import { join } from 'node:path';
import { makeTextFolder } from '@tollgate/testkit/folders';
import type { Test } from 'tap';
import type { RotatingCertificates } from './rotating-certificates.ts';

/**
 * A transport socket of TLS to servers for `localhost`, with a certificate of Envoy's own. Envoy reads files anew that
 * are told to it as secrets with the folder to watch, and only those.
 */
export function tlsTransportSocket(t: Test, files: RotatingCertificates): object {
  const secrets = makeTextFolder(t);
  const watched = { watched_directory: { path: files.folder } };
  const write = (name: string, secret: object): void =>
    secrets.write(
      `${name}.json`,
      JSON.stringify({
        resources: [
          {
            '@type': 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret',
            name,
            ...secret,
          },
        ],
      }),
    );
  write('own', {
    tls_certificate: {
      certificate_chain: { filename: files.certFile },
      private_key: { filename: files.keyFile },
      ...watched,
    },
  });
  write('authorities', {
    validation_context: {
      trusted_ca: { filename: files.caFile },
      match_typed_subject_alt_names: [{ san_type: 'DNS', matcher: { exact: 'localhost' } }],
      ...watched,
    },
  });
  const secret = (name: string): object => ({
    name,
    sds_config: {
      path_config_source: { path: join(secrets.path, `${name}.json`) },
      resource_api_version: 'V3',
    },
  });
  return {
    name: 'envoy.transport_sockets.tls',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext',
      common_tls_context: {
        alpn_protocols: ['h2'],
        tls_certificate_sds_secret_configs: [secret('own')],
        validation_context_sds_secret_config: secret('authorities'),
      },
    },
  };
}
