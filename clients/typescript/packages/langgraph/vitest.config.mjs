import { defineConfig } from "vitest/config";

export default defineConfig({
  cacheDir: ".build/vite",
  test: { globals: true, include: ["test/*.spec.ts"], testTimeout: 60_000, hookTimeout: 60_000 },
});
