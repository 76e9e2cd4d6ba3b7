import { Ajv2020 } from 'ajv/dist/2020.js';
import { adminApiDocument } from '../../src/operator-api/open-api.ts';
import { operations } from '../../src/operator-api/operations.ts';

type Json = Record<string, unknown>;

export interface AdminApiReply {
  readonly status: number;
  readonly json: Json;
}

/** Calls the admin API, POST with a body. Responses must be those of the OpenAPI document. */
export async function callAdminApi(
  port: number,
  path: string,
  { body, headers = {} }: { readonly body?: unknown; readonly headers?: Record<string, string> } = {},
): Promise<AdminApiReply> {
  const method = body === undefined ? 'GET' : 'POST';
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    method,
    headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  // Parsed boundary: replies are JSON objects.
  const json = (await response.json()) as Json;
  checkDocumented(method, path, { status: response.status, json });
  return { status: response.status, json };
}

const ajv = new Ajv2020({ strict: false, validateFormats: false });
ajv.addSchema({ $id: 'document', ...adminApiDocument() });

function checkDocumented(method: string, path: string, { status, json }: AdminApiReply): void {
  const [pathname = ''] = path.split('?');
  const operation = Object.values(operations).find(
    (one) =>
      one.method === method && new RegExp(`^${one.path.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(pathname),
  );
  const schema = status === 200 ? operation?.response : 'Error';
  if (schema !== undefined && !ajv.validate(`document#/components/schemas/${schema}`, json))
    throw new Error(`the response of ${method} ${path} is not that of the document: ${ajv.errorsText()}`);
}
