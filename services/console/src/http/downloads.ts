import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import type { Permission } from '../scopes.ts';
import type { Visit } from './visit.ts';

/** A file that the browser saves. */
export interface Download {
  /** Media type. */
  readonly type: string;
  readonly fileName: string;
  readonly content: AsyncIterable<string>;
}

/** GET of a file. */
export interface DownloadRoute {
  readonly path: string;
  readonly permission: Permission;
  /** Throws before the response begins when the file cannot be made. */
  readonly open: (visit: Visit) => Promise<Download>;
}

/** Sends a file in pieces. An error ends the connection: no file looks complete. */
export function sendDownload(reply: FastifyReply, { type, fileName, content }: Download): FastifyReply {
  return reply
    .header('cache-control', 'no-store')
    .header('content-disposition', `attachment; filename="${fileName}"`)
    .type(type)
    .send(Readable.from(content));
}
