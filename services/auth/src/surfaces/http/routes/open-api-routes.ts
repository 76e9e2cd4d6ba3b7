import type { AddRoutes } from '../api.ts';
import { openApiDocument } from '../open-api/open-api.ts';

/** The description of the API that it serves itself. @see https://spec.openapis.org/oas/v3.1.0 */
export const addOpenApiRoutes: AddRoutes = (api) => {
  let json: string | undefined;
  api.get('/openapi.json', (_request, reply) => {
    // Once: it does not change, and serializing it for each request would be a cost that anyone can cause.
    json ??= JSON.stringify(openApiDocument(api));
    return reply
      .header('cache-control', 'public, max-age=300')
      .type('application/json; charset=utf-8')
      .send(json);
  });
};
