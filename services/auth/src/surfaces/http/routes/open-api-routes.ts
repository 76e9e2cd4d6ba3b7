import type { AddRoutes } from '../api.ts';
import { openApiDocument } from '../open-api/open-api.ts';

/** The description of the API that it serves itself. @see https://spec.openapis.org/oas/v3.1.0 */
export const addOpenApiRoutes: AddRoutes = (api) => {
  api.get('/openapi.json', (_request, reply) =>
    reply.header('cache-control', 'public, max-age=300').send(openApiDocument(api)),
  );
};
