import packageJson from '../../../package.json' with { type: 'json' };

const [, owner] = /github\.com\/([\w-]+)\//.exec(packageJson.repository.url) ?? [];

/**
 * Where .github/workflows/release.yaml publishes images: `IMAGE_REGISTRY` of its job, with the
 * owner of the repository.
 */
export const releaseRegistry = `ghcr.io/${owner}`;
