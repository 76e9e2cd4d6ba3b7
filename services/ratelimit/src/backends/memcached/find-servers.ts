/** Whether a text has the form of an SRV record's name, `_service._proto.name`. */
export function isSrvName(name: string): boolean {
  return /^_[^.\s]+\._[^.\s]+\.\S+$/.test(name);
}
