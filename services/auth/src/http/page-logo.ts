import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { extname } from 'node:path';
import { getErrorMessage } from '@tollgate/kit/errors';
import { type Settings, settingsSpec } from '../config/settings.ts';
import type { BaseContext } from '../context.ts';
import type { AddRoutes } from './api.ts';
import { pageUrl } from './page-url.ts';

const types: Readonly<Record<string, string>> = {
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.jpg': 'image/jpeg',
  '.jpeg': 'image/jpeg',
  '.webp': 'image/webp',
};
/** Every page shows it, and it stays in memory. */
const maxBytes = 256 * 1024;

type LogoSettings = Pick<Settings, 'pagesLogoUrl' | 'pagesLogoFile' | 'apiExternalUrl'>;

/** The URL of the logo, and its CSP source. Undefined without a logo. */
export function findLogo(
  settings: LogoSettings,
): { readonly url: string; readonly source: string } | undefined {
  const { pagesLogoUrl: url, pagesLogoFile } = settings;
  // Absolute, as applications behind a gateway show it, too.
  const logo = pagesLogoFile === '' ? url : pageUrl(settings, 'logo');
  return logo === '' ? undefined : { url: logo, source: new URL(logo).origin };
}

/**
 * `/pages/logo`: the image of a file, which is read once.
 *
 * @throws Error for a file that cannot be read, is too large, or is no image: the server does not
 * start
 */
export const addLogoRoute: AddRoutes<BaseContext> = (api, { settings: { pagesLogoFile: file } }) => {
  if (file === '') return;
  const { type, content } = readLogo(file);
  const etag = `"${createHash('sha256').update(content).digest('base64url').slice(0, 16)}"`;
  const options = { schema: { hide: true }, exposeHeadRoute: false };
  api.get('/pages/logo', options, (request, reply) => {
    reply.headers({
      etag,
      'cache-control': 'public, max-age=3600',
      'cross-origin-resource-policy': 'cross-origin',
      'x-content-type-options': 'nosniff',
      // An SVG that is opened by itself must not run scripts of this origin.
      'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    });
    return request.headers['if-none-match'] === etag
      ? reply.code(304).send()
      : reply.type(type).send(content);
  });
};

function readLogo(file: string): { readonly type: string; readonly content: Buffer } {
  const type = types[extname(file).toLowerCase()];
  if (type === undefined) throw unusable(`${file} is not one of ${Object.keys(types).join(', ')}`);
  const content = read(file);
  if (content.length === 0 || content.length > maxBytes)
    throw unusable(`${file} has ${content.length} bytes; 1 to ${maxBytes} are allowed`);
  return { type, content };
}

function read(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (cause) {
    throw unusable(`the file cannot be read: ${getErrorMessage(cause)}`);
  }
}

function unusable(reason: string): Error {
  return new Error(`${settingsSpec.pagesLogoFile.env}: ${reason}`);
}
