import cors from '@fastify/cors';
import type { Settings } from '../../settings/settings.ts';
import type { Api } from './api.ts';

const allowedHeaders = [
  'Accept',
  'Authorization',
  'Content-Type',
  'X-Client-IP',
  'X-Client-Info',
  'X-JWT-AUD',
  'x-use-cookie',
  'apikey',
  'X-Supabase-Api-Version',
  'X-Svc-Api-Version',
  'X-Svc-Session-Tag',
];
const exposedHeaders = [
  'X-Total-Count',
  'Link',
  'Retry-After',
  'X-Supabase-Api-Version',
  'X-Svc-Api-Version',
];

/** Lets browsers of any origin call the API: it knows its callers by their token, not by cookies. */
export function addCors(api: Api, { corsAllowedHeaders }: Pick<Settings, 'corsAllowedHeaders'>): void {
  void api.register(cors, {
    origin: '*',
    methods: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'],
    allowedHeaders: [...allowedHeaders, ...corsAllowedHeaders],
    exposedHeaders,
    credentials: true,
    strictPreflight: false,
  });
}
