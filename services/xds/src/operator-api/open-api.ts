import { openApiDocument } from '@tollgate/kit/open-api';
import packageJson from '../../package.json' with { type: 'json' };
import { operations } from './operations.ts';
import { schemas } from './schemas.ts';

export function adminApiDocument(): object {
  return openApiDocument({
    title: 'Tollgate xDS admin API',
    version: packageJson.version,
    server: 'http://127.0.0.1:8090',
    tags: {
      Objects: 'Access policies and limits, with their versions and conditions.',
      Clients: 'Limiters and auth servers.',
      Server: 'The state of the server.',
    },
    operations,
    schemas,
    token: 'The token of XDS_ADMIN_TOKEN. Without one, clients on loopback need none.',
    failed: 'The server failed to answer. Try again later.',
  });
}
