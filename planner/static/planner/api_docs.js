"use strict";

SwaggerUIBundle({
  url: document.getElementById("swagger-ui").dataset.schemaUrl,
  dom_id: "#swagger-ui",
  presets: [SwaggerUIBundle.presets.apis],
  layout: "BaseLayout",
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  // The public validator would send the address of this server away.
  validatorUrl: null,
});
